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

// Exit codes of all programs.
enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,            // NaN loss or another permanent failure
  kExitBadConfiguration = 2,  // arguments or configuration
  kExitRetryable = 138,       // starting it again may help
  kExitTerminated = 143,      // stopped on request, and nothing is lost
};

// Returns the exit code of a role that ended with `status`.
int ExitCodeOf(const absl::Status& status);
// Returns the same error with a payload that makes ExitCodeOf return `exit_code`, as long as callers pass the error on
// unchanged.
absl::Status WithExitCode(absl::Status status, int exit_code);

// Returns the same error, marked as caused by a hanging disk (kExitFailed). Code that ends the process because of it
// must not destroy any object that may write.
absl::Status AsDiskHang(absl::Status status);
bool IsDiskHang(const absl::Status& status);

// The value that InitializeProcess gives GRPC_EXPERIMENTS.
inline constexpr char kGrpcExperiments[] = "-tcp_read_chunks";

// Initializes the process. Must be the first call in every main. Logs go to stderr. The C library keeps freed memory,
// which halves the time of a step, and has one heap for all threads. gRPC's connections choose the size of their read
// buffers, unless GRPC_EXPERIMENTS is set. The limit on open files is raised as far as allowed. SIGPIPE and SIGXFSZ are
// ignored, so that a write beyond `ulimit -f` fails as on a full disk. SIGUSR1 and SIGUSR2 have no effect unless a
// TerminationWatch takes them. SIGCHLD is not ignored, even if the parent ignores it. If there is a TargetError()
// (kernels/vectors/target.h), ends the process with it. The instruction set of the whole program has been checked
// before main (kernels/vectors/required_instructions.h).
void InitializeProcess(const char* program);

// Returns to the kernel the freed memory that InitializeProcess makes the C library keep. Call this after using a large
// amount of memory that is not needed again.
void ReleaseFreedMemory();

// Returns this machine's name.
std::string HostName();

// Returns "worker-1234@host": the role, process id and host name. In a container, six random hexadecimal digits replace
// the process id, because it is often 1 and another container may have the same host name. All calls of one process
// return the same name.
std::string ProcessName(const std::string& role);

// Returns the signals that tell a process to stop: SIGTERM, SIGINT, SIGXCPU and, unless it is ignored as under nohup,
// SIGHUP.
sigset_t StopSignals();
// Returns StopSignals() plus SIGUSR1 and SIGUSR2, which tell the process to save now and to continue.
sigset_t WatchedSignals();

// Maximum time from a stop request to the exit of a process, in addition to the time for saving
// (checkpoint.stop_seconds). It allows for the event file and for calls that hang on a disk. A process that exceeds it
// ends itself.
constexpr absl::Duration kEndingLimit = absl::Seconds(15);

// Acts on WatchedSignals() in its own threads, as StopRequests defines. A signal that means an immediate end ends the
// process with `second_exit_code`, even while a callback hangs. The watch also ends the process when `limit` has passed
// since the first stop signal, even if stderr blocks. It creates all threads at the start, so a process that can get no
// more threads still stops. No signal ends the watch itself. Create it before any other thread, so that all threads
// block the signals. The destructor waits for the callbacks and ends the watch; the signals stay blocked.
class TerminationWatch {
 public:
  struct Options {
    // Called once, at the first stop signal.
    std::function<void()> on_stop;
    // Called at a signal that requests a save, but not after on_stop. All signals that arrive before the call begins
    // are one request. Must not block, because on_stop would wait for it. Null if the process has nothing to save.
    std::function<void()> on_save;
    // Called when the watch ends the process. Returns the exit code.
    std::function<int()> second_exit_code = [] { return kExitTerminated; };
    // Called at the first stop signal. Returns the time after which the watch ends the process.
    std::function<absl::Duration()> limit = [] { return absl::InfiniteDuration(); };
    Clock* clock = Clock::Real();
    Executor* executor = Executor::Threads();
  };

  explicit TerminationWatch(Options options);
  ~TerminationWatch();

  // Returns the first stop signal, or 0 if none has arrived.
  int stop_signal() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs the callbacks.
  void Act() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the next signal and returns it, or returns a negative number at `deadline`.
  int Next(absl::Time deadline);
  // Makes Act call on_stop or, if `stop_signal` is 0, on_save, unless the watch is ending.
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
  // True if no further request is accepted. A stop that was already requested is still acted on.
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // True if the watch has ended, in which case the next signal only wakes watcher_.
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  // Runs the callbacks.
  std::unique_ptr<Thread> actor_;
  // Takes the signals.
  std::unique_ptr<Thread> watcher_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_PROCESS_PROCESS_H_
