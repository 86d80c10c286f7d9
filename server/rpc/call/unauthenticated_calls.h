#ifndef LOCKSTEP_SERVER_RPC_CALL_UNAUTHENTICATED_CALLS_H_
#define LOCKSTEP_SERVER_RPC_CALL_UNAUTHENTICATED_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

// A call that can be evicted as long as its session is unknown.
class EvictableCall {
 public:
  virtual ~EvictableCall() = default;
  // Ends the call, because there are too many. Called on any thread; the call may already have left.
  virtual void OnEvicted() = 0;
};

// The unauthenticated calls of a server. Limiting their number bounds the memory of their messages. While there are
// more than `most`, calls older than `patience` are ended, oldest first, because a legitimate call is short. A thousand
// workers that join at once are all served; a thousand idle calls are not. Thread-safe.
class UnauthenticatedCalls {
 public:
  struct Options {
    size_t most = 64;
    // Maximum number of calls of any age.
    size_t most_young = 2048;
    absl::Duration patience = absl::Seconds(1);
    Clock* clock = Clock::Real();  // must outlive this
  };

  explicit UnauthenticatedCalls(const Options& options) : options_(options) {}

  void Enter(std::shared_ptr<EvictableCall> call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes a call, if it is present.
  void Leave(const EvictableCall* call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Evicts calls that have become too old. Must be called regularly.
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_) { EvictExcess(); }
  // Returns the number of calls that were evicted.
  int64_t num_evicted() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return num_evicted_;
  }

 private:
  struct Entry {
    std::shared_ptr<EvictableCall> call;
    absl::Time entered;
  };
  using Entries = std::list<Entry>;

  void EvictExcess() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  int64_t num_evicted_ ABSL_GUARDED_BY(mutex_) = 0;
  // Calls in the order in which they entered.
  Entries calls_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<const EvictableCall*, Entries::iterator> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_UNAUTHENTICATED_CALLS_H_
