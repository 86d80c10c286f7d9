#ifndef LOCKSTEP_SERVER_SYNC_SHARD_STAGED_CONTRIBUTION_H_
#define LOCKSTEP_SERVER_SYNC_SHARD_STAGED_CONTRIBUTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/server/sync/shard/step_shard.h"

namespace lockstep {

// The contribution of one worker, kept separate until it is complete, so that it counts for every variable or for none.
// Accepts frames as sums do, and copies their gradients, which takes as much memory as the trainable variables. For use
// by one thread at a time.
class StagedContribution : public StepSums {
 public:
  void AddReports(absl::Span<const v1::SlotReport> reports) override;
  // `piece` must not be sparse. Returns false, because none of it is new to a step yet.
  bool AddPiece(const SlotBlock& block, const StepPiece& piece) override;
  bool complete() const override { return false; }
  absl::optional<NonFiniteValue> FindNonFinite(const SlotBlock& block) const override { return absl::nullopt; }
  size_t num_finished_segments() const override { return 0; }

  // Adds the whole contribution, which was computed for one slot, to `sums` as slot `slot`. Returns true if any
  // gradient was new.
  bool AddTo(int64_t slot, StepSums* sums);

 private:
  struct Piece {
    StepPiece piece;  // its content is in `memory`
    AlignedBuffer memory;
  };

  std::vector<v1::SlotReport> reports_;
  std::vector<Piece> pieces_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_SHARD_STAGED_CONTRIBUTION_H_
