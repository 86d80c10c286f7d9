#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/training_exchange.h"

namespace lockstep {
namespace benchmark {

// The locations of the systems with which Lockstep is compared, and of Lockstep's Python package.
struct Peers {
  // Path of a Python interpreter that has PyTorch and TensorFlow. oneDNN must be installed system-wide.
  std::string python;
  // The folder tests/benchmark/peers.
  std::string scripts;
};

// Training in PyTorch with SGD, one thread per process.
struct TorchTraining {
  std::string model;  // "softmax", "mlp" or "cnn", as in model_exchange.h
  int64_t batch = 64;
  // If true, the processes call lockstep.torch.deterministic().
  bool deterministic = false;
};

// PyTorch DistributedDataParallel over gloo, with one process per worker. A single worker runs PyTorch alone.
Exchange DdpExchange(const Peers& peers, const TorchTraining& training);
// PyTorch in a run of Lockstep: a chief, and workers with lockstep.torch.
Exchange TorchRunExchange(const Peers& peers, const TorchTraining& training);

// The exchange of LockstepExchange, with workers of Lockstep's Python package. A worker takes its slots in a loop, or
// the package calls a function for each (Worker.run).
enum class PythonSlots { kLoop, kFunction };
Exchange PythonExchange(const Peers& peers, PythonSlots slots);

// TensorFlow with a parameter server, and workers that use SyncReplicasOptimizer.
Exchange SyncReplicasExchange(const Peers& peers, const TrainingSpec& training);

// The layers with which TorchModelExchange runs the step of ModelExchange in PyTorch: PyTorch's own, in one of its two
// image formats, or those of lockstep.torch.portable().
enum class TorchLayers { kNchw, kNhwc, kPortable };
Exchange TorchModelExchange(const Peers& peers, const std::string& name, int64_t batch, TorchLayers layers);

// Runs the step of ProductExchange with oneDNN's sgemm.
Exchange OneDnnExchange(const Peers& peers, int64_t batch);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_
