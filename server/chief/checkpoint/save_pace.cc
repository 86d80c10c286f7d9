#include "lockstep/server/chief/checkpoint/save_pace.h"

#include <algorithm>

namespace lockstep {
namespace {

// Fraction of the interval between snapshots that paced writing may take. The rest is for unpaced work (sync, a slow
// disk) and for varying intervals, so that saves do not fall behind.
constexpr double kPartOfInterval = 0.5;

}  // namespace

SavePace::SavePace(absl::Time begin, uint64_t bytes, absl::Duration interval)
    : begin_(begin),
      per_piece_(
          std::min(absl::Seconds(kPieceBytes / kBytesPerSecond),
                   interval * (kPartOfInterval * kPieceBytes / static_cast<double>(std::max(bytes, kPieceBytes))))) {}

absl::Time SavePace::TurnOf(uint64_t offset) const {
  return begin_ + per_piece_ * static_cast<int64_t>(offset / kPieceBytes);
}

}  // namespace lockstep
