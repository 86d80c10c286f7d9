#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_DEADLINE_QUEUE_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_DEADLINE_QUEUE_H_

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/sync/workers/flat_set.h"

namespace lockstep {

// A schedule of when to check each session, for deadlines that are usually moved before they are reached. The owner
// keeps the deadlines, moves them freely, and calls Watch again if a session was checked too early. Pure; not
// thread-safe.
class DeadlineQueue {
 public:
  // Makes PopDue return the session at `time`. If the session is already watched, its pending time does not change.
  void Watch(uint64_t session, absl::Time time) {
    const auto added = times_.try_emplace(session, time);
    if (added.second) order_.insert({time, session});
  }
  void Forget(uint64_t session) {
    const auto it = times_.find(session);
    if (it == times_.end()) return;
    order_.erase({it->second, session});
    times_.erase(it);
  }
  // Returns the session with the earliest time if that is not after `now`, and stops watching it. Otherwise, returns
  // nullopt.
  absl::optional<uint64_t> PopDue(absl::Time now) {
    if (order_.empty() || order_.front().first > now) return absl::nullopt;
    const uint64_t session = order_.front().second;
    Forget(session);
    return session;
  }

 private:
  absl::flat_hash_map<uint64_t, absl::Time> times_;
  FlatSet<std::pair<absl::Time, uint64_t>> order_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_DEADLINE_QUEUE_H_
