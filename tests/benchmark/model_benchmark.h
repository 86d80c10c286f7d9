#ifndef LOCKSTEP_TESTS_BENCHMARK_MODEL_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_MODEL_BENCHMARK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/tests/benchmark/exchange/peer_exchange.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct ModelBenchmarkOptions {
  std::vector<int64_t> batches = {64, 256};
  // For each model and batch.
  double seconds = 8;
  // For logs; exists.
  std::string directory;
};

// Forward and backward passes of the models of model_exchange.h on one thread against PyTorch's, in whichever memory
// format it is faster with.
absl::Status MeasureModels(const ModelBenchmarkOptions& options, const Peers& peers, Report* report);

// The matrix products of the perceptron on one thread against oneDNN's sgemm.
absl::Status MeasureProducts(const ModelBenchmarkOptions& options, const Peers& peers, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_MODEL_BENCHMARK_H_
