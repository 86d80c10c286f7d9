#ifndef LOCKSTEP_TESTS_BENCHMARK_KERNEL_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_KERNEL_BENCHMARK_H_

#include <cstdint>
#include <vector>

#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct KernelBenchmarkOptions {
  std::vector<int64_t> batches = {64, 256};
  // For each batch of products and of convolutions, and for the kernels that memory bounds; five turns at least.
  double seconds = 5;
  // Also a row for each product and convolution, without a bar.
  bool parts = false;
};

// The matrix products of the MLP and the convolutions of a CNN against the processor's peak of fused multiply-adds, and
// the kernels that memory bounds against a plain copy: on one thread, for each target of this machine. Turns of the
// peak (or the copy) and of every kernel alternate; processor time, so that other programs disturb it little.
void MeasureKernels(const KernelBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_KERNEL_BENCHMARK_H_
