#ifndef LOCKSTEP_TESTS_BENCHMARK_KERNEL_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_KERNEL_BENCHMARK_H_

#include <cstdint>
#include <vector>

#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct KernelBenchmarkOptions {
  std::vector<int64_t> batches = {64, 256};
  // Measuring time in seconds, spent on the products and on the convolutions for each batch size, and on the
  // memory-bound kernels. Each gets at least five turns.
  double seconds = 5;
  // If true, also reports each product and each convolution in a row of its own, without a bar.
  bool parts = false;
};

// Compares the matrix products of the MLP and the convolutions of a CNN with the processor's peak rate of fused
// multiply-adds, and the memory-bound kernels with a plain copy. Runs on one thread, for each kernel target of this
// machine. Measures the peak (or the copy) and every kernel in alternating turns. Because processor time is measured,
// other programs have little influence.
void MeasureKernels(const KernelBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_KERNEL_BENCHMARK_H_
