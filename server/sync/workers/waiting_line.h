#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_WAITING_LINE_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_WAITING_LINE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "lockstep/server/sync/workers/worker_state.h"

namespace lockstep {

// The sessions that wait for a token, in the order in which they began to wait. A worker with a startup delay takes
// part once the global step has reached its delay. If no worker takes part, the one with the shortest delay starts.
// Pure; not thread-safe.
class WaitingLine {
 public:
  // Must be called after each change to a worker.
  void Update(uint64_t session, const WorkerState& worker);
  void Remove(uint64_t session);

  // Returns the sessions that wait and take part at global step `step`, longest wait first.
  std::vector<uint64_t> Ready(int64_t step);

 private:
  // The global step at which each session starts to take part, for sessions that are heard from and have not left.
  std::map<uint64_t, int64_t> starts_;
  std::deque<uint64_t> waiting_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_WAITING_LINE_H_
