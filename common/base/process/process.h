#ifndef LOCKSTEP_COMMON_BASE_PROCESS_PROCESS_H_
#define LOCKSTEP_COMMON_BASE_PROCESS_PROCESS_H_

#include <pthread.h>

#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"

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
// Returns the same error with a payload: ExitCodeOf returns `exit_code` for it, as long as callers pass it on
// unchanged.
absl::Status WithExitCode(absl::Status status, int exit_code);

// Returns the same error, marked as caused by a disk that hangs (kExitFailed): code that ends the process with it must
// not destroy any object that may write.
absl::Status AsDiskHang(absl::Status status);
bool IsDiskHang(const absl::Status& status);

// First call of every main: logging to stderr, the C library set to keep freed memory (it halves the time of a
// step) and to have one heap for all threads, as many open files as allowed, no SIGPIPE, and no
// SIGXFSZ: beyond `ulimit -f` a write fails, as on a full disk. SIGUSR1 and SIGUSR2 change nothing where no
// TerminationWatch takes them. SIGCHLD is not ignored, even if the parent ignores it. Ends the process with
// TargetError() when there is one (kernels/vectors/target.h). What everything is compiled for was checked before main
// (kernels/vectors/required_instructions.h).
void InitializeProcess(const char* program);

// Returns freed memory, which InitializeProcess has the C library keep, to the kernel. Called after a large use of
// memory that does not recur.
void ReleaseFreedMemory();

// This machine's name.
std::string HostName();

// "worker-1234@host": the role, process id and host name. In a container, where the id is often 1 and another may have
// the same host name, six random hexadecimal digits stand for the id. The same at each call of one process.
std::string ProcessName(const std::string& role);

// The signals that tell a process to stop: SIGTERM, SIGINT, SIGXCPU and, unless it is ignored as under nohup, SIGHUP.
sigset_t StopSignals();
// StopSignals(), and SIGUSR1 and SIGUSR2, which tell the process to save now and to continue.
sigset_t WatchedSignals();

// Maximum time that a process that was asked to stop may take in addition to saving (checkpoint.stop_seconds), for the
// event file and for calls that hang in a disk. Then it ends itself.
constexpr absl::Duration kEndingLimit = absl::Seconds(15);

// Acts on WatchedSignals() as StopRequests defines them, in a thread of its own. A signal that means an immediate end
// ends the process with `second_exit_code`, even while a callback hangs; so does the watch when `limit` has passed
// since the first stop signal, even if stderr takes nothing. All threads exist from the start: a process that can get
// no more threads still stops. No signal ends the watch itself. Life: make it before any other thread, so that all
// block the signals. Destroying it waits for the callbacks and ends the watch; the signals stay blocked.
class TerminationWatch {
 public:
  struct Options {
    // Called once, at the first stop signal.
    std::function<void()> on_stop;
    // Called at a signal that asks for a save, but not after on_stop. Signals that arrive before the call begins are
    // one request. Must not block: on_stop would wait for it. Null if the process has nothing to save.
    std::function<void()> on_save;
    // Called when the process is ended.
    std::function<int()> second_exit_code = [] { return kExitTerminated; };
    // Called at the first stop signal.
    std::function<absl::Duration()> limit = [] { return absl::InfiniteDuration(); };
    Clock* clock = Clock::Real();
    Executor* executor = Executor::Threads();
  };

  explicit TerminationWatch(Options options);
  ~TerminationWatch();

  // Returns the first stop signal; 0 if there was none.
  int stop_signal() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs the callbacks.
  void Act() ABSL_LOCKS_EXCLUDED(mutex_);
  // The next signal; negative at `deadline`.
  int Next(absl::Time deadline);
  // Has Act call on_stop, or else on_save if `stop_signal` is 0, unless the watch is ending.
  void RequestAct(int stop_signal) ABSL_LOCKS_EXCLUDED(mutex_);
  bool over() const ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const sigset_t signals_;
  mutable Mutex mutex_;
  CondVar changed_;
  // The id of watcher_; absent until it runs.
  absl::optional<pthread_t> watcher_id_ ABSL_GUARDED_BY(mutex_);
  int stop_signal_ ABSL_GUARDED_BY(mutex_) = 0;
  bool save_due_ ABSL_GUARDED_BY(mutex_) = false;
  // No callback begins any more.
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // The watch has ended: the next signal only wakes watcher_.
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  // Runs the callbacks.
  std::unique_ptr<Thread> actor_;
  // Takes the signals.
  std::unique_ptr<Thread> watcher_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_PROCESS_H_
