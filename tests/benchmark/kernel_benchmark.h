#ifndef LOCKSTEP_TESTS_BENCHMARK_KERNEL_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_KERNEL_BENCHMARK_H_

#include <cstdint>
#include <vector>

#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct KernelBenchmarkOptions {
  std::vector<int64_t> batches = {64, 256};
  // Seconds for each batch of products and of convolutions, and for the memory-bound kernels. Each gets at least five
  // turns.
  double seconds = 5;
  // If true, also reports each product and convolution in a row without a bar.
  bool parts = false;
};

// Compares the matrix products of the MLP and the convolutions of a CNN with the processor's peak rate of fused
// multiply-adds, and the memory-bound kernels with a plain copy. Runs on one thread, for each kernel target of this
// machine. Turns of the peak (or the copy) and of every kernel alternate. Measures processor time, so other programs
// have little influence.
void MeasureKernels(const KernelBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_KERNEL_BENCHMARK_H_
