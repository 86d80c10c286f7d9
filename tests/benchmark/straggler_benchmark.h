#ifndef LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_BENCHMARK_H_

#include "absl/status/status.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct StragglerBenchmarkOptions {
  // Seconds for each policy and number of backups, of which there are nine.
  double seconds = 10;
};

// Measures how each policy bears workers that are slow at times: a chief and eight workers in threads of this process,
// whose model sleeps for a random time with a heavy tail before it computes. With b backups a step needs 8 - b batches.
// Reports the batches per second that count, against eight workers that never wait, and the time of a step. Sleeping
// workers need no processor, so the results hardly depend on the machine.
absl::Status MeasureStragglers(const StragglerBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_BENCHMARK_H_
