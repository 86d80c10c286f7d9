#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_PACE_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_PACE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace lockstep {

// Schedules the pieces of a checkpoint that is written while training continues. Spreads pieces of kPieceBytes evenly,
// slowly enough that training is hardly affected, but fast enough to finish halfway to the next snapshot. A writer that
// is behind schedule may catch up. Immutable.
class SavePace {
 public:
  // Size of a piece. It takes one or two milliseconds to write, which bounds how long a step waits for a piece.
  static constexpr uint64_t kPieceBytes = 1 << 20;
  // Saving costs about one second of processor time per 1e9 bytes (checksum, copy into the page cache, write-back). At
  // this rate a save uses 3.4 % of one processor. Steps slow down by less than that, because processors have idle
  // moments between steps.
  static constexpr double kBytesPerSecond = 32 << 20;

  // Paces a checkpoint of `bytes` bytes that starts at `begin`, with a snapshot every `interval`, which is infinite if
  // unknown.
  SavePace(absl::Time begin, uint64_t bytes, absl::Duration interval);

  // Returns the time at which the piece that contains the byte at `offset` may be written. The first piece may be
  // written immediately, and so may a checkpoint that has only one piece.
  absl::Time TurnOf(uint64_t offset) const;

 private:
  const absl::Time begin_;
  const absl::Duration per_piece_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_SAVE_PACE_H_
