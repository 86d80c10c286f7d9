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
  // If true, worker processes share memory with the chief, as they do by default.
  bool share_memory = true;
  // Batch sizes: the number of examples that each worker contributes to a step.
  std::vector<int64_t> batches = {64, 256};
  // The numbers of worker processes.
  std::vector<int> workers = {1, 2, 4};
  // Measuring time, in seconds, for each combination of a model and a batch size.
  double seconds = 8;
  // An existing folder for data and logs.
  std::string directory;
};

// Measures the perceptron 784-512-512-10 and softmax regression 784-10: one process relative to a bare Eigen loop, and
// the examples per second of worker processes relative to one process. Also measures the perceptron with two workers
// under ASYNC and FIRST_ARRIVALS relative to two processes that share nothing.
absl::Status MeasureTraining(const TrainingBenchmarkOptions& options, Report* report);

// Measures the same models with two workers, relative to PyTorch's DistributedDataParallel and TensorFlow's
// SyncReplicasOptimizer. The latter is also compared with FIRST_ARRIVALS, which has the same rule.
absl::Status MeasurePeers(const TrainingBenchmarkOptions& options, const Peers& peers, Report* report);

// Measures PyTorch in a run with two workers, relative to PyTorch's DistributedDataParallel: the same models and
// processes, once as PyTorch comes and once with lockstep.torch.deterministic() on both sides.
absl::Status MeasureTorch(const TrainingBenchmarkOptions& options, const Peers& peers, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_TRAINING_BENCHMARK_H_
