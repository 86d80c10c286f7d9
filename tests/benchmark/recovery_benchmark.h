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
  // The program `lockstep`, whose `run` command restarts the chief.
  std::string supervisor;
  // An existing folder; checkpoints are written below it.
  std::string directory;
  // Each repetition starts new processes, because a supervisor waits longer before restarting a process that died
  // recently.
  int repetitions = 5;
  // The lease of a worker's token, a whole number of milliseconds.
  absl::Duration lease = absl::Seconds(1);
};

// Measures the longest time without a commit in three cases: one of two workers is killed (kill -9); one of two workers
// is halted (SIGSTOP, which resembles the loss of its machine because no connection breaks); the chief is killed and
// its supervisor restarts it. Also measures the time until a standby makes a step in two cases: the chief is killed;
// the chief is halted.
absl::Status MeasureRecovery(const RecoveryBenchmarkOptions& options, Report* report);

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_RECOVERY_BENCHMARK_H_
