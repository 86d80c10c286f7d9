#include "lockstep/server/sync/shard/staged_contribution.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "glog/logging.h"

namespace lockstep {

void StagedContribution::AddReports(absl::Span<const v1::SlotReport> reports) {
  reports_.insert(reports_.end(), reports.begin(), reports.end());
}

bool StagedContribution::AddPiece(const SlotBlock&, const StepPiece& piece) {
  CHECK(!piece.sparse) << "differences from estimates, which belong to slots";
  Piece staged;
  staged.memory = AlignedBuffer(piece.content.bytes());
  piece.content.CopyBytes(staged.memory.data());
  staged.piece.variable = piece.variable;
  staged.piece.offset = piece.offset;
  staged.piece.content.set_type(piece.content.type());
  staged.piece.content.Append(absl::string_view(staged.memory.data(), staged.memory.size()));
  pieces_.push_back(std::move(staged));
  return false;
}

bool StagedContribution::AddTo(int64_t slot, StepSums* sums) {
  for (v1::SlotReport& report : reports_) report.set_slot(slot);
  sums->AddReports(reports_);
  bool any_new = false;
  for (const Piece& piece : pieces_) any_new |= sums->AddPiece({slot, 1}, piece.piece);
  return any_new;
}

}  // namespace lockstep
