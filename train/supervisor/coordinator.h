#ifndef LOCKSTEP_TRAIN_SUPERVISOR_COORDINATOR_H_
#define LOCKSTEP_TRAIN_SUPERVISOR_COORDINATOR_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep {

// Stops a group of threads together. When a thread fails or requests a stop, all threads are asked to stop; one place
// joins them and receives the first error. To use it, start threads, have them check ShouldStop, and call Join; after
// ClearStop the coordinator may be used again. Owns the threads: its destructor requests a stop and waits for them
// without a time limit. Thread-safe, but the threads must not call Join or the destructor.
class Coordinator {
 public:
  struct Options {
    Clock* clock = Clock::Real();              // must outlive the coordinator
    Executor* executor = Executor::Threads();  // must outlive the coordinator
    // Errors with these codes count as a clean end: they request the stop, but are not kept.
    std::vector<absl::StatusCode> clean_stop_codes = {absl::StatusCode::kOutOfRange};
  };

  Coordinator();
  explicit Coordinator(Options options);
  ~Coordinator();

  // Asks all threads to stop. `reason` may be OK or an error with a clean code; any other error becomes the group's
  // error. The first such error is kept, even if a clean stop was requested before it. Cancelled is not an error if a
  // stop was already requested, because it is a consequence of that request. Returns OK. If the group has already been
  // joined, so that Join cannot return the error, returns the error itself.
  absl::Status RequestStop(absl::Status reason = absl::OkStatus()) ABSL_LOCKS_EXCLUDED(mutex_);

  bool ShouldStop() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until a stop is requested or `timeout` has passed. Returns true if a stop is requested.
  bool WaitForStop(absl::Duration timeout = absl::InfiniteDuration()) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `callback` once, without holding locks, in the thread that requests the next stop, or immediately if a stop
  // is already requested. The call may come after all threads have ended, at the latest from the destructor.
  void OnStop(std::function<void()> callback) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the group's error; OK if there is none.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs `body` in a new thread of the group. If it returns an error or throws an exception, a stop is requested.
  void StartThread(absl::string_view name, std::function<absl::Status()> body) ABSL_LOCKS_EXCLUDED(mutex_);

  // The work of a StartLoop thread. `run` is called immediately and then at start + k * period (back to back if the
  // period is zero), until a stop is requested. If a call takes longer than the period, the overdue calls follow back
  // to back. `start` is called before the first `run`, and `stop` after the last, unless there was an error. `start`
  // and `stop` may be null.
  struct Loop {
    absl::Duration period;
    std::function<absl::Status()> run;
    std::function<absl::Status()> start;
    std::function<absl::Status()> stop;
  };
  // Runs `loop` in a new thread of the group. Returns InvalidArgument if it has no `run`.
  absl::Status StartLoop(absl::string_view name, Loop loop) ABSL_LOCKS_EXCLUDED(mutex_);

  struct JoinOptions {
    // The maximum time that threads may continue after the stop was requested.
    absl::Duration grace = absl::Seconds(120);
    // If true, threads that outlast `grace` are only logged, and Join returns no error for them.
    bool ignore_live_threads = false;
  };
  // Waits without a time limit until the threads currently in the group have ended or a stop is requested, then at most
  // `grace` for the remaining threads. Returns the group's error. If there is none but threads are still running,
  // returns DeadlineExceeded with their names; these threads are removed from the group, but the destructor waits for
  // them. Otherwise returns OK.
  absl::Status Join(const JoinOptions& options) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Join() { return Join(JoinOptions()); }

  // Clears the stop request and the error, so that the coordinator can be used again after Join.
  void ClearStop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Member;
  using Members = std::vector<std::shared_ptr<Member>>;

  bool IsClean(const absl::Status& status) const;
  // Does the work of RequestStop except for calling the callbacks, which it moves to `callbacks`.
  absl::Status NoteStop(absl::Status reason, std::vector<std::function<void()>>* callbacks) ABSL_LOCKS_EXCLUDED(mutex_);
  bool WaitForStopUntil(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RunLoop(const Loop& loop) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the names of the members that have not ended, separated by commas; empty if all have ended.
  std::string LiveNames(const Members& members) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  CondVar changed_;  // signaled when a stop is requested or a thread has ended
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool joined_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> on_stop_ ABSL_GUARDED_BY(mutex_);
  Members group_ ABSL_GUARDED_BY(mutex_);
  // Members that were still running when a Join removed them from the group.
  Members stragglers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_COORDINATOR_H_
