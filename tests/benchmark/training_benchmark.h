#ifndef LOCKSTEP_TESTS_BENCHMARK_TRAINING_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_TRAINING_BENCHMARK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/tests/benchmark/exchange/peer_exchange.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct TrainingBenchmarkOptions {
  // Workers in processes of their own share memory with the chief, as they do by default.
  bool share_memory = true;
  // Examples in each worker's part of a step.
  std::vector<int64_t> batches = {64, 256};
  // Processes.
  std::vector<int> workers = {1, 2, 4};
  // For each model and batch.
  double seconds = 8;
  // For data and logs; exists.
  std::string directory;
};

// The perceptron 784-512-512-10 and softmax regression 784-10: in one process against a bare Eigen loop, and examples a
// second with worker processes against one process.
absl::Status MeasureTraining(const TrainingBenchmarkOptions& options, Report* report);

// The same with two workers against PyTorch's DistributedDataParallel and TensorFlow's SyncReplicasOptimizer.
absl::Status MeasurePeers(const TrainingBenchmarkOptions& options, const Peers& peers, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_TRAINING_BENCHMARK_H_
