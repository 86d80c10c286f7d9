#ifndef LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_BENCHMARK_H_

#include "absl/status/status.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct StragglerBenchmarkOptions {
  // Measuring time, in seconds, for each of the nine combinations of a policy and a number of backups.
  double seconds = 10;
};

// Measures how well each policy copes with workers that are sometimes slow. Runs a chief and eight workers in threads
// of this process; before each computation, the model sleeps for a random time with a heavy-tailed distribution. With b
// backups, a step needs 8 - b batches. Reports the number of batches per second that contribute to steps, relative to
// eight workers that never wait, and the time per step. Sleeping workers need no processor, so the results hardly
// depend on the machine.
absl::Status MeasureStragglers(const StragglerBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_STRAGGLER_BENCHMARK_H_
