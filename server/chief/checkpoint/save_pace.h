#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_PACE_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_PACE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace lockstep {

// When each part of a checkpoint is to be written while training continues: evenly, one piece of kPieceBytes at a time,
// so slowly that training hardly feels it, but fast enough to be done half-way to the next snapshot. Who is late may
// catch up. Immutable.
class SavePace {
 public:
  // A millisecond of work, or two: no step waits longer for one.
  static constexpr uint64_t kPieceBytes = 1 << 20;
  // Saving costs about a second of processor time for 1e9 bytes (checksum, copy into the page cache, write-back), so at
  // this rate 3.4 % of one processor: 3.4 % of the steps if training had to wait for all of it. It waits for less, as
  // processors have idle moments between steps.
  static constexpr double kBytesPerSecond = 32 << 20;

  // For a checkpoint of `bytes` from `begin` on, when snapshots come every `interval`; infinite when that is unknown.
  SavePace(absl::Time begin, uint64_t bytes, absl::Duration interval);

  // When the piece with the byte at `offset` may be written. The first may at once, and so may a checkpoint that is
  // not larger than a piece.
  absl::Time TurnOf(uint64_t offset) const;

 private:
  const absl::Time begin_;
  const absl::Duration per_piece_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_PACE_H_
