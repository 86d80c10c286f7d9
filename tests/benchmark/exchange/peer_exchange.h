#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_

#include <cstdint>
#include <string>

#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/tests/benchmark/exchange/training_exchange.h"

namespace lockstep {
namespace benchmark {

// Where the other systems are found.
struct Peers {
  // A Python interpreter that has PyTorch and TensorFlow; oneDNN is the system's.
  std::string python;
  // The folder tests/benchmark/peers.
  std::string scripts;
};

// PyTorch DistributedDataParallel over gloo, one process a worker; with one worker, PyTorch alone.
Exchange DdpExchange(const Peers& peers, const TrainingSpec& training);

// TensorFlow: a parameter server, and workers with SyncReplicasOptimizer.
Exchange SyncReplicasExchange(const Peers& peers, const TrainingSpec& training);

// What ModelExchange does, in PyTorch; images lie in memory by channels (NCHW), or channels last.
Exchange TorchModelExchange(const Peers& peers, const std::string& name, int64_t batch, bool channels_last);

// What ProductExchange does, by oneDNN's sgemm.
Exchange OneDnnExchange(const Peers& peers, int64_t batch);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PEER_EXCHANGE_H_
