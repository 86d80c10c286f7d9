#ifndef LOCKSTEP_COMMON_BASE_PROCESS_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_H_

#include <pthread.h>

#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/executor.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

// Exit codes of every program.
enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,            // NaN loss or another permanent failure
  kExitBadConfiguration = 2,  // arguments or configuration
  kExitRetryable = 138,       // starting it again may help
  kExitTerminated = 143,      // stopped on request, and nothing is lost
};

// The exit code for the status with which a role ended.
int ExitCodeOf(const absl::Status& status);
// The same error; ExitCodeOf is this code, whoever passes it on as it is.
absl::Status WithExitCode(absl::Status status, int exit_code);

// The same error; it is because a disk hangs (kExitFailed): whoever ends the process with it destroys nothing that may
// write.
absl::Status AsDiskHang(absl::Status status);
bool IsDiskHang(const absl::Status& status);

// First call of every main: logging to stderr, the C library set to keep freed memory (it halves the time of a
// step) and to have one heap for all threads, as many open files as allowed, no SIGPIPE, and no
// SIGXFSZ: beyond `ulimit -f` a write fails, as on a full disk. Ends the process with TargetError() when there is one
// (common/kernels/target.h). What everything is compiled for was checked before main
// (common/kernels/required_instructions.h).
void InitializeProcess(const char* program);

// Gives what was freed, and what InitializeProcess has the C library keep, back to the kernel: after something large
// that does not come again.
void ReleaseFreedMemory();

// This machine's name.
std::string HostName();

// "worker-1234@host": the role, process id and host name.
std::string ProcessName(const std::string& role);

// The signals that tell a process to stop: SIGTERM, SIGINT and, unless it is ignored as under nohup, SIGHUP.
sigset_t StopSignals();

// How long a process that was asked to stop may take beyond saving (checkpoint.stop_seconds): the event file, calls
// that hang in a disk. Then it ends itself.
constexpr absl::Duration kEndingLimit = absl::Seconds(15);

// Calls `on_first` in a thread of its own at the first of StopSignals(). One that means an end at once, as StopRequests
// has it, ends the process even while `on_first` hangs, with `second_exit_code`; so does the watch when `limit` has
// passed since the first. Others change nothing. Make it before any other thread, so that all block the signals.
// Destroying it waits for `on_first` and ends the watch; the signals stay blocked.
class TerminationWatch {
 public:
  explicit TerminationWatch(std::function<void()> on_first, int second_exit_code = kExitTerminated,
                            absl::Duration limit = absl::InfiniteDuration(), Clock* clock = Clock::Real(),
                            Executor* executor = Executor::Threads());
  // `limit` is asked at the first signal, `second_exit_code` when the process is ended.
  TerminationWatch(std::function<void()> on_first, std::function<int()> second_exit_code,
                   std::function<absl::Duration()> limit, Clock* clock = Clock::Real(),
                   Executor* executor = Executor::Threads());
  ~TerminationWatch();

 private:
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // The next signal; negative at `deadline`.
  int Next(absl::Time deadline);
  void OnFirst() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<void()> on_first_;
  const std::function<int()> second_exit_code_;
  const sigset_t signals_;
  const std::function<absl::Duration()> limit_;
  Clock* const clock_;
  Executor* const executor_;
  Mutex mutex_;
  CondVar watching_;
  // The id of thread_; absent until it runs.
  absl::optional<pthread_t> watcher_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // Runs on_first_; made by thread_.
  std::unique_ptr<Thread> first_ ABSL_GUARDED_BY(mutex_);
  // Takes the signals.
  std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_H_
