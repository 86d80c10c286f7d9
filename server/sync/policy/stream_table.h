#ifndef LOCKSTEP_SERVER_SYNC_POLICY_STREAM_TABLE_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_STREAM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/server/sync/workers/worker_state.h"

namespace lockstep {

// The input streams of a run whose batches belong to streams: which session reads each, and its next batch. A batch is
// named by its address, so it is taken once, whoever computed it and however often. Pure; not thread-safe.
class StreamTable {
 public:
  // `positions`: of a checkpoint, one for each stream.
  explicit StreamTable(std::vector<int64_t> positions = {});

  // Returns the next batch of the session's stream: of the one that it has, else of the first that no session has, else
  // of a new one. Streams that have ended do not count, and no new one is made once any has ended; nullopt if none is
  // left.
  absl::optional<BatchAddress> Attach(uint64_t session);
  // The session's stream, if it has one, is free for another session, which continues with the same batch.
  void Detach(uint64_t session);

  // Returns true if the session reads this stream.
  bool Reads(uint64_t session, int64_t stream) const;
  // Returns true if the batch is its stream's next: it was not taken before.
  bool IsNext(const BatchAddress& batch) const;
  // The batch is spent, and the next one of its stream follows. Ignored if it is not its stream's next.
  void Advance(const BatchAddress& batch);
  // The input of the session's stream has no further batch. The session may read another stream.
  void End(uint64_t session);
  // Returns true if there are streams and all have ended.
  bool all_ended() const;

  // The values now include every batch that was taken.
  void Commit();
  // The batches that were taken since the last Commit come again, also those of a stream that has ended since. Sessions
  // keep their streams.
  void Rollback();
  // The next position of each stream at the last Commit.
  const std::vector<int64_t>& positions() const { return committed_; }

 private:
  struct Stream {
    int64_t position = 0;
    bool is_read = false;
    bool ended = false;
  };

  std::vector<Stream> streams_;
  std::map<uint64_t, size_t> readers_;  // streams by session
  std::vector<int64_t> committed_;
  // The streams that have advanced since the last Commit, perhaps repeatedly.
  std::vector<size_t> advanced_;
  bool any_ended_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_STREAM_TABLE_H_
