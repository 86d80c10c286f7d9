#ifndef LOCKSTEP_SERVER_SYNC_POLICY_STREAM_TABLE_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_STREAM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lockstep/server/sync/workers/worker_state.h"

namespace lockstep {

// The input streams of a run whose batches belong to streams: which session reads each, and its next batch. A batch is
// named by its address, so it is taken once, whoever computed it and however often. Pure; not thread-safe.
class StreamTable {
 public:
  // `positions`: of a checkpoint, one for each stream.
  explicit StreamTable(std::vector<int64_t> positions = {})
      : positions_(std::move(positions)), is_read_(positions_.size(), false) {}

  // Returns the next batch of the session's stream: of the one that it has, else of the first that no session has, else
  // of a new one.
  BatchAddress Attach(uint64_t session);
  // The session's stream, if it has one, is free for another session, which continues with the same batch.
  void Detach(uint64_t session);

  // True if the batch is its stream's next: it was not taken before.
  bool IsNext(const BatchAddress& batch) const;
  // The batch is spent, and the next one of its stream follows. Ignored if it is not its stream's next.
  void Advance(const BatchAddress& batch);

  // The next position of each stream.
  const std::vector<int64_t>& positions() const { return positions_; }
  // The streams continue from these positions, and later ones from the start; sessions keep their streams.
  void Restore(const std::vector<int64_t>& positions);

 private:
  std::vector<int64_t> positions_;
  std::vector<bool> is_read_;
  std::map<uint64_t, size_t> streams_;  // by session
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_STREAM_TABLE_H_
