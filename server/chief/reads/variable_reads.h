#ifndef LOCKSTEP_SERVER_CHIEF_READS_VARIABLE_READS_H_
#define LOCKSTEP_SERVER_CHIEF_READS_VARIABLE_READS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/system_random.h"
#include "lockstep/server/chief/reads/read_table.h"
#include "lockstep/server/ps/versions/snapshot_entries.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// Answers ReadVariables (proto/lockstep/v1/chief.proto). The shell around ReadTable: keeps the one snapshot that the
// table pins, and copies parts of it into replies. Taking a snapshot copies nothing, because it is a reference.
// Thread-safe. Lock order: mutex_ is held while a snapshot is taken.
class VariableReads {
 public:
  struct Options {
    Clock* clock = nullptr;
    // Draws the id of a read, which must be unpredictable.
    std::function<uint64_t()> draw_id = SystemRandom64;
    // `step` returns the global step, and `take_snapshot` the state at that step. Every snapshot has the same entries.
    std::function<int64_t()> step;
    std::function<VariableSnapshot()> take_snapshot;
    // If not OK, memory cannot hold a version for reads, and every read returns this error.
    absl::Status memory;
    ReadTable::Limits limits;
    // Approximate size of a reply.
    size_t reply_bytes = 1 << 20;
  };

  explicit VariableReads(Options options) : options_(std::move(options)), table_(options_.limits) {}

  // Handles the call. The proto documents its errors.
  absl::StatusOr<v1::ReadVariablesReply> Read(const v1::ReadVariablesRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes expired reads. Must be called regularly.
  void ForgetIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  // The step whose version is kept. Absent if there are no active reads.
  absl::optional<int64_t> pinned_step() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The entries that one request reads, and the end offset of each in their concatenation, in bytes. A position in a
  // read is an offset in this concatenation.
  struct Selection {
    std::vector<size_t> entries;
    std::vector<int64_t> ends;
  };

  absl::StatusOr<v1::ReadVariablesReply> ListNames(const v1::ReadVariablesRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::ReadVariablesReply> Begin(const v1::ReadVariablesRequest& request, uint64_t id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::ReadVariablesReply> Continue(const v1::ReadVariablesRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<const Selection>> Select(const v1::ReadVariablesRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets entries_, by_key_ and all_ on the first read.
  void LearnEntries() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the parts starting at `position`; without values if `snapshot` is null.
  absl::Status Fill(const Selection& selection, int64_t position, const VariableSnapshot* snapshot,
                    v1::ReadVariablesReply* reply) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Expire(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Releases selections and the snapshot once no read needs them.
  void DropUnread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  ReadTable table_ ABSL_GUARDED_BY(mutex_);
  // The snapshot of table_.pinned_step().
  absl::optional<VariableSnapshot> pinned_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<const Selection>> selections_ ABSL_GUARDED_BY(mutex_);
  // All readable entries. Empty before the first read.
  std::vector<SnapshotEntry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<absl::string_view, size_t> by_key_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Selection> all_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_READS_VARIABLE_READS_H_
