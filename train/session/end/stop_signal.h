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

// Passes on what signals ask of the process: to stop, or to save now and to continue. Thread-safe.
class StopSignal {
 public:
  // Calls `stop` of all listeners, once, in the caller's thread.
  void Request() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `save` of all listeners that have one, in the caller's thread. If none has, the next to be added that has one
  // is called. Returns whether any was called.
  bool RequestSave() ABSL_LOCKS_EXCLUDED(mutex_);
  bool requested() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Who runs sessions in the process says how long a stop may take; the longest counts.
  void Allow(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);
  // How long that is; `otherwise` when nobody has said so.
  absl::Duration limit(absl::Duration otherwise) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether the process may be ended at any moment and has lost nothing, as while its chief reads a checkpoint.
  void set_loses_nothing(bool loses_nothing) { loses_nothing_ = loses_nothing; }
  bool loses_nothing() const { return loses_nothing_; }

  // The id of no listener.
  static constexpr int64_t kNone = 0;
  // `stop` is called at once if a stop was requested before. `save` must not block; null where there is nothing to
  // save. After Remove neither is being called any more; kNone may be removed at any time.
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
  // The listener after `id`, which is being called from now on; null when there is none.
  Listener* BeginNext(int64_t* id) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<bool> loses_nothing_{false};
  mutable Mutex mutex_;
  CondVar called_;
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  absl::optional<absl::Duration> limit_ ABSL_GUARDED_BY(mutex_);
  // A save was requested when no listener had one.
  bool save_pending_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = kNone;
  // One that is being called stays until the call returns.
  std::map<int64_t, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_STOP_SIGNAL_H_
