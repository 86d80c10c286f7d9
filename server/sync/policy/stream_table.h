#ifndef LOCKSTEP_SERVER_SYNC_POLICY_STREAM_TABLE_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_STREAM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/server/sync/workers/worker_state.h"

namespace lockstep {

// The input streams of a run whose batches belong to streams: for each stream, the session that reads it and its next
// batch. A batch is identified by its address, so it is taken only once, even if several workers have computed it.
// Pure; not thread-safe.
class StreamTable {
 public:
  // `positions` come from a checkpoint, one for each stream.
  explicit StreamTable(std::vector<int64_t> positions = {});

  // Returns the next batch of the session's stream. A session without a stream gets the first stream that has not ended
  // and that no session reads, or else a new one. Once any stream has ended, no new ones are created. Returns nullopt
  // if no stream is left.
  absl::optional<BatchAddress> Attach(uint64_t session);
  // Frees the session's stream, if it has one, for another session, which continues with the same batch.
  void Detach(uint64_t session);

  // Returns true if the session reads this stream.
  bool Reads(uint64_t session, int64_t stream) const;
  // Returns true if the batch is its stream's next one, so that it was not taken before.
  bool IsNext(const BatchAddress& batch) const;
  // Takes the batch, so that its stream moves on to the next one. Ignored if it is not its stream's next batch.
  void Advance(const BatchAddress& batch);
  // Ends the session's stream, because its input has no further batch. The session may read another stream.
  void End(uint64_t session);
  // Returns true if there are streams and all of them have ended.
  bool all_ended() const;

  // Records that the values now include every batch that was taken.
  void Commit();
  // Makes the batches that were taken since the last Commit available again, including those of streams that have ended
  // since. Sessions keep their streams.
  void Rollback();
  // Returns the next position of each stream at the last Commit.
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
  // The streams that have advanced since the last Commit. May contain duplicates.
  std::vector<size_t> advanced_;
  bool any_ended_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_STREAM_TABLE_H_
