#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_

#include <cstdint>
#include <string>

#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/training_exchange.h"

namespace lockstep {
namespace benchmark {

// The locations of the other systems.
struct Peers {
  // A Python interpreter with PyTorch and TensorFlow. oneDNN is installed system-wide.
  std::string python;
  // The folder tests/benchmark/peers.
  std::string scripts;
};

// PyTorch DistributedDataParallel over gloo, with one process per worker. A single worker runs PyTorch alone.
Exchange DdpExchange(const Peers& peers, const TrainingSpec& training);

// TensorFlow with a parameter server, and workers that use SyncReplicasOptimizer.
Exchange SyncReplicasExchange(const Peers& peers, const TrainingSpec& training);

// Runs the step of ModelExchange in PyTorch, either with PyTorch's layers and one of its two image formats, or with the
// layers of lockstep.torch.portable().
enum class TorchLayers { kNchw, kNhwc, kPortable };
Exchange TorchModelExchange(const Peers& peers, const std::string& name, int64_t batch, TorchLayers layers);

// Runs the step of ProductExchange with oneDNN's sgemm.
Exchange OneDnnExchange(const Peers& peers, int64_t batch);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_
