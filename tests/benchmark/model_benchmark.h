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
  // Measuring time, in seconds, for each combination of a model and a batch size.
  double seconds = 8;
  // An existing folder for logs.
  std::string directory;
};

// Compares the forward and backward passes of the models in model_exchange.h, on one thread, with those of PyTorch in
// whichever memory format is faster. Also compares PyTorch's own layers with Lockstep's layers in PyTorch
// (lockstep.torch.portable()).
absl::Status MeasureModels(const ModelBenchmarkOptions& options, const Peers& peers, Report* report);

// Compares the matrix products of the perceptron on one thread with oneDNN's sgemm.
absl::Status MeasureProducts(const ModelBenchmarkOptions& options, const Peers& peers, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_MODEL_BENCHMARK_H_
