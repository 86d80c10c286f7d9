#include "server/chief/incoming_contribution.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {

int64_t UpdateBytes(const ParameterLayout& layout) {
  int64_t bytes = 0;
  for (const auto& op : layout.update_ops()) {
    bytes += layout.variables()[op.variable].elements * static_cast<int64_t>(sizeof(float));
  }
  return bytes;
}

std::string DescribeBlock(int64_t step, const SlotBlock& block) {
  return absl::StrCat(block.ToString(), " of step ", step);
}

void IncomingContribution::Begin(int64_t step, const SlotBlock& block, bool sparse) {
  begun_ = true;
  step_ = step;
  block_ = block;
  sparse_ = sparse;
  any_new_ = false;
  ReportJoiner::Options reports;
  reports.reports = block.count;
  reports.updates = static_cast<int64_t>(layout_.update_ops().size());
  reports.update_bytes = UpdateBytes(layout_);
  reports_.Begin(reports);
  segments_.assign(layout_.segments().size() * static_cast<size_t>(pieces_of_a_segment()), false);
  num_segments_ = 0;
}

absl::Status IncomingContribution::CheckSame(int64_t step, const SlotBlock& block) const {
  if (step == step_ && block == block_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a frame for ", DescribeBlock(step, block),
                                                 " inside a contribution to ", DescribeBlock(step_, block_)));
}

absl::Status IncomingContribution::AddReports(absl::Span<const SlotReport> reports, bool keep) {
  if (reports_.complete() && !reports.empty()) {
    return absl::InvalidArgumentError("reports were sent twice in one contribution");
  }
  for (const SlotReport& report : reports) RETURN_IF_ERROR(reports_.Add(report, keep));
  return absl::OkStatus();
}

absl::Status IncomingContribution::CheckReported() const {
  if (reports_.complete()) return absl::OkStatus();
  if (reports_.begun() == 0) return absl::InvalidArgumentError("gradients came before the reports of their slots");
  return absl::InvalidArgumentError(absl::StrCat("gradients came after ", reports_.begun(),
                                                 " reports in a contribution to ", block_.ToString(), ", expected ",
                                                 block_.count, ", whole"));
}

void IncomingContribution::End() {
  begun_ = false;
  reports_.Begin({});
}

absl::Status IncomingContribution::MarkPiece(const StepPiece& piece) {
  const auto& variable = layout_.variables()[piece.variable];
  int segment = variable.first_segment + static_cast<int>(piece.offset / ParameterLayout::kSegmentElements);
  const size_t base = sparse_ ? static_cast<size_t>(piece.slot - block_.first) * layout_.segments().size() : 0;
  // A sparse piece is one segment, however few of its elements it holds.
  const int64_t elements = sparse_ ? 1 : piece.content.size();
  for (int64_t at = 0; at < elements; at += layout_.segments()[segment++].elements) {
    if (segments_[base + segment]) {
      return absl::InvalidArgumentError(absl::StrCat("the gradient of ", variable.spec.name(), " from element ",
                                                     layout_.segments()[segment].offset, " was sent twice"));
    }
    segments_[base + segment] = true;
    ++num_segments_;
  }
  return absl::OkStatus();
}

absl::Status IncomingContribution::CheckWhole() const {
  const int64_t expected = layout_.num_trainable_segments() * pieces_of_a_segment();
  if (num_segments_ == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the contribution to ", DescribeBlock(step_, block_), " has ",
                                                 num_segments_, " of ", expected, " pieces of ",
                                                 ParameterLayout::kSegmentElements, " elements"));
}

}  // namespace lockstep
