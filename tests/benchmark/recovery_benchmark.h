#ifndef LOCKSTEP_TESTS_BENCHMARK_RECOVERY_BENCHMARK_H_
#define LOCKSTEP_TESTS_BENCHMARK_RECOVERY_BENCHMARK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/tests/benchmark/cluster_processes.h"
#include "tests/benchmark/report.pb.h"

namespace lockstep {
namespace benchmark {

struct RecoveryBenchmarkOptions {
  Programs programs;
  // `lockstep`, whose command `run` keeps the chief alive.
  std::string supervisor;
  // Exists; checkpoints are written below it.
  std::string directory;
  // Each with processes of its own: a supervisor waits longer before it starts a process again that died a moment ago.
  int repetitions = 5;
  // Of a worker's token; a whole number of milliseconds.
  absl::Duration lease = absl::Seconds(1);
};

// The longest time without a commit when one of two workers is killed (kill -9) or halted (SIGSTOP, as if its machine
// had gone: no connection breaks), and when the chief is killed, which its supervisor starts again.
absl::Status MeasureRecovery(const RecoveryBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_RECOVERY_BENCHMARK_H_
