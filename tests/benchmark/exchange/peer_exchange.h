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
  // A Python interpreter with PyTorch and TensorFlow. oneDNN is installed on the system.
  std::string python;
  // The folder tests/benchmark/peers.
  std::string scripts;
};

// PyTorch DistributedDataParallel over gloo, with one process per worker. With one worker, PyTorch alone.
Exchange DdpExchange(const Peers& peers, const TrainingSpec& training);

// TensorFlow with a parameter server, and workers with SyncReplicasOptimizer.
Exchange SyncReplicasExchange(const Peers& peers, const TrainingSpec& training);

// The step of ModelExchange in PyTorch: with its own layers and images in either format, or with the layers of
// lockstep.torch.portable().
enum class TorchLayers { kNchw, kNhwc, kPortable };
Exchange TorchModelExchange(const Peers& peers, const std::string& name, int64_t batch, TorchLayers layers);

// The step of ProductExchange with oneDNN's sgemm.
Exchange OneDnnExchange(const Peers& peers, int64_t batch);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_
