#ifndef LOCKSTEP_TESTS_BENCHMARK_PEER_EXCHANGE_H_
#define LOCKSTEP_TESTS_BENCHMARK_PEER_EXCHANGE_H_

#include <string>

#include "lockstep/tests/benchmark/exchange.h"
#include "lockstep/tests/benchmark/training_exchange.h"

namespace lockstep {
namespace benchmark {

// Where the other systems are found.
struct Peers {
  // A Python interpreter that has PyTorch and TensorFlow.
  std::string python;
  // The folder tests/benchmark/peers.
  std::string scripts;
};

// PyTorch DistributedDataParallel over gloo, one process a worker; with one worker, PyTorch alone.
Exchange DdpExchange(const Peers& peers, const TrainingSpec& training);

// TensorFlow: a parameter server, and workers with SyncReplicasOptimizer.
Exchange SyncReplicasExchange(const Peers& peers, const TrainingSpec& training);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_PEER_EXCHANGE_H_
