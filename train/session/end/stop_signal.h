#ifndef LOCKSTEP_TRAIN_SESSION_END_STOP_SIGNAL_H_
#define LOCKSTEP_TRAIN_SESSION_END_STOP_SIGNAL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep::train {

// Requests that arrive as signals to the process: to stop, or to save now and continue. Forwards them to listeners.
// Thread-safe.
class StopSignal {
 public:
  // Calls `stop` on all listeners, once, in the caller's thread.
  void Request() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `save` on all listeners that have one, in the caller's thread. If none has one, the next listener added with
  // a `save` is called then. Returns true if any was called now.
  bool RequestSave() ABSL_LOCKS_EXCLUDED(mutex_);
  bool requested() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets how long a stop may take for the sessions that the caller runs in this process. If called several times, the
  // longest time applies.
  void Allow(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the longest time set by Allow, or `otherwise` if none was set.
  absl::Duration limit(absl::Duration otherwise) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets whether killing the process at any moment would lose nothing, for example while its chief reads a checkpoint.
  void set_loses_nothing(bool loses_nothing) { loses_nothing_ = loses_nothing; }
  bool loses_nothing() const { return loses_nothing_; }

  // An id that no listener has.
  static constexpr int64_t kNone = 0;
  // Adds a listener and returns its id. Calls `stop` immediately if a stop has already been requested. `save` must not
  // block; it is null if there is nothing to save. When Remove returns, no call to `stop` or `save` is in progress or
  // will follow. kNone may be removed at any time.
  int64_t Add(std::function<void()> stop, std::function<void()> save = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(int64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Listener {
    std::function<void()> stop, save;
    // The number of calls in progress, made without the lock.
    int calls = 0;
  };
  // Calls `call` on each listener that has it, in id order. Returns the number of calls.
  int CallAll(std::function<void()> Listener::*call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the listener after `*id`, updates `*id`, and marks the listener as being called. Returns null if there is
  // none.
  Listener* BeginNext(int64_t* id) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<bool> loses_nothing_{false};
  mutable Mutex mutex_;
  CondVar called_;
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  absl::optional<absl::Duration> limit_ ABSL_GUARDED_BY(mutex_);
  // True if a save was requested while no listener had `save`.
  bool save_pending_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = kNone;
  // The listeners by id. A listener that is being called stays until the call returns.
  std::map<int64_t, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_STOP_SIGNAL_H_
