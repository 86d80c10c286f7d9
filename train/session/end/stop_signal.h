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

// Forwards the requests of signals to the process: to stop, or to save now and continue. Thread-safe.
class StopSignal {
 public:
  // Calls `stop` of all listeners, once, in the caller's thread.
  void Request() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `save` of all listeners that have one, in the caller's thread. If none has one, the next added listener that
  // has one is called. Returns true if any was called.
  bool RequestSave() ABSL_LOCKS_EXCLUDED(mutex_);
  bool requested() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets how long a stop may take for the sessions that the caller runs in this process. The longest time counts.
  void Allow(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the longest time that Allow has set, or `otherwise` if there is none.
  absl::Duration limit(absl::Duration otherwise) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets whether a kill of the process at any moment would lose nothing, as while its chief reads a checkpoint.
  void set_loses_nothing(bool loses_nothing) { loses_nothing_ = loses_nothing; }
  bool loses_nothing() const { return loses_nothing_; }

  // The id of no listener.
  static constexpr int64_t kNone = 0;
  // Adds a listener and returns its id. Calls `stop` immediately if a stop was requested before. `save` must not block;
  // null if there is nothing to save. After Remove, neither is being called any more. kNone may be removed at any time.
  int64_t Add(std::function<void()> stop, std::function<void()> save = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(int64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Listener {
    std::function<void()> stop, save;
    // Calls in progress, made without the lock.
    int calls = 0;
  };
  // Calls `call` of each listener, in the order of their ids; returns how many have one.
  int CallAll(std::function<void()> Listener::*call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the listener after `id`, which is being called from now on. Null if there is none.
  Listener* BeginNext(int64_t* id) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<bool> loses_nothing_{false};
  mutable Mutex mutex_;
  CondVar called_;
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  absl::optional<absl::Duration> limit_ ABSL_GUARDED_BY(mutex_);
  // True if a save was requested while no listener had `save`.
  bool save_pending_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = kNone;
  // The listeners by id. One that is being called stays until the call returns.
  std::map<int64_t, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_STOP_SIGNAL_H_
