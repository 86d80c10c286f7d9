#include "lockstep/server/sync/machine/contribution_checker.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/step/sparse_differences.h"
#include "lockstep/common/tensor/bools.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

constexpr int64_t kSegmentElements = ParameterLayout::kSegmentElements;

// Returns the size of the update values in one slot's report, in bytes.
int64_t UpdateBytes(const ParameterLayout& layout) {
  int64_t bytes = 0;
  for (const auto& op : layout.update_ops()) {
    bytes += static_cast<int64_t>(layout.variables()[op.variable].bytes());
  }
  return bytes;
}

}  // namespace

ContributionChecker::ContributionChecker(const ParameterLayout* layout, const Options& options)
    : layout_(*layout), options_(options) {
  report_limits_.updates = static_cast<int64_t>(layout_.update_ops().size());
  report_limits_.update_bytes = UpdateBytes(layout_);
  report_limits_.summary_bytes = MaxSummaryBytes(layout_);
}

void ContributionChecker::Begin(int64_t step, const SlotBlock& block) {
  step_ = step;
  block_ = block;
  report_limits_.reports = block.count;
  joiner_.Begin(report_limits_);
  segments_.assign(layout_.segments().size() * static_cast<size_t>(pieces_of_a_segment()), false);
  num_segments_ = 0;
}

absl::Status ContributionChecker::CheckFrame(const StepFrame& frame, bool wanted) {
  if (frame.step != step_ || frame.block != block_) {
    return absl::InvalidArgumentError(absl::StrCat("a frame for ", DescribeBlock(frame.step, frame.block),
                                                   " inside a contribution to ", DescribeBlock(step_, block_)));
  }
  if (frame.end_of_input && !frame.end) {
    return absl::InvalidArgumentError("the end of the input is said in a frame that is not the contribution's last");
  }
  if (!frame.reports.empty()) RETURN_IF_ERROR(CheckReports(frame.reports, wanted));
  if (!frame.gradients.empty()) RETURN_IF_ERROR(CheckReported());
  if (!wanted) return absl::OkStatus();
  for (const StepPiece& piece : frame.gradients) {
    RETURN_IF_ERROR(CheckPiece(piece));
    RETURN_IF_ERROR(MarkPiece(piece));
  }
  return absl::OkStatus();
}

absl::Status ContributionChecker::CheckReports(const std::vector<v1::SlotReport>& reports, bool wanted) {
  if (reported()) return absl::InvalidArgumentError("reports were sent twice in one contribution");
  for (const v1::SlotReport& report : reports) RETURN_IF_ERROR(joiner_.Add(report, /*keep=*/wanted));
  if (!reported() || !wanted) return absl::OkStatus();
  seen_.assign(static_cast<size_t>(block_.count), false);
  for (const v1::SlotReport& report : joiner_.kept()) {
    RETURN_IF_ERROR(CheckReport(report));
    if (seen_[report.slot() - block_.first]) {
      return absl::InvalidArgumentError(absl::StrCat("two reports for slot ", report.slot()));
    }
    seen_[report.slot() - block_.first] = true;
  }
  return absl::OkStatus();
}

absl::Status ContributionChecker::CheckReport(const v1::SlotReport& report) const {
  if (report.slot() < block_.first || report.slot() >= block_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a report for slot ", report.slot(), " in a contribution to ", block_.ToString()));
  }
  if (report.has_weight() && (!std::isfinite(report.weight()) || report.weight() < 0)) {
    return absl::InvalidArgumentError(absl::StrCat("the report of slot ", report.slot(), " has the weight ",
                                                   report.weight(), ", must be a finite number, 0 or more"));
  }
  const auto& ops = layout_.update_ops();
  if (report.update_size() != static_cast<int>(ops.size())) {
    return absl::InvalidArgumentError(absl::StrCat("the report of slot ", report.slot(), " has ", report.update_size(),
                                                   " update values; the model has ", ops.size(), " update ops"));
  }
  for (int i = 0; i < report.update_size(); ++i) {
    const ParameterLayout::Variable& variable = layout_.variables()[ops[i].variable];
    if (report.update(i).size() != variable.bytes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the update of ", ops[i].spec.variable(), " for slot ", report.slot(), " has ", report.update(i).size(),
          " bytes, expected ", variable.bytes(), " of ", NameOf(variable.spec.dtype())));
    }
    if (variable.spec.dtype() == v1::DT_BOOL && !AreBools(report.update(i))) {
      return absl::InvalidArgumentError(absl::StrCat("the update of ", ops[i].spec.variable(), " for slot ",
                                                     report.slot(), " has a bool that is neither 0 nor 1"));
    }
  }
  return absl::OkStatus();
}

absl::Status ContributionChecker::CheckReported() const {
  if (reported()) return absl::OkStatus();
  if (joiner_.begun() == 0) return absl::InvalidArgumentError("gradients came before the reports of their slots");
  return absl::InvalidArgumentError(absl::StrCat("gradients came after ", joiner_.begun(),
                                                 " reports in a contribution to ", block_.ToString(), ", expected ",
                                                 block_.count, ", whole"));
}

absl::Status ContributionChecker::CheckPiece(const StepPiece& piece) const {
  if (piece.sparse != options_.sparse) {
    return absl::InvalidArgumentError(absl::StrCat("a gradient is sent ", piece.sparse ? "sparse" : "whole",
                                                   "; the run's travel ", options_.sparse ? "sparse" : "whole"));
  }
  if (piece.variable < 0 || piece.variable >= static_cast<int64_t>(layout_.variables().size())) {
    return absl::InvalidArgumentError(absl::StrCat("a gradient for variable number ", piece.variable,
                                                   "; the model has ", layout_.variables().size(), " variables"));
  }
  RETURN_IF_ERROR(piece.sparse ? CheckSparse(piece) : CheckDense(piece));
  if (piece.content.type() == options_.gradients) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the gradient of ", layout_.variables()[piece.variable].spec.name(),
                                                 " is sent as ", NameOf(piece.content.type()),
                                                 "; the run's gradients travel as ", NameOf(options_.gradients)));
}

absl::Status ContributionChecker::CheckDense(const StepPiece& piece) const {
  const auto& variable = layout_.variables()[piece.variable];
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("the gradient of ", variable.spec.name(), " at element ",
                                                   piece.offset, " with ", piece.content.bytes(), " bytes ", what));
  };
  if (!variable.spec.trainable()) return error("is for a variable that is not trainable");
  if (piece.content.bytes() == 0 || piece.content.bytes() % piece.content.element_bytes() != 0)
    return error(absl::StrCat("has no whole number of ", NameOf(piece.content.type()), " elements"));
  if (piece.offset < 0 || piece.offset >= variable.elements ||
      piece.content.size() > variable.elements - piece.offset) {
    return error(absl::StrCat("does not lie within its ", variable.elements, " elements"));
  }
  const bool to_end = piece.offset + piece.content.size() == variable.elements;
  if (piece.offset % kSegmentElements != 0 || (!to_end && piece.content.size() % kSegmentElements != 0)) {
    return error(absl::StrCat("is not made of whole pieces of ", kSegmentElements, " elements"));
  }
  return absl::OkStatus();
}

absl::Status ContributionChecker::CheckSparse(const StepPiece& piece) const {
  const auto& variable = layout_.variables()[piece.variable];
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("the gradient of ", variable.spec.name(), " for slot ", piece.slot,
                                                   " at element ", piece.offset, " ", what));
  };
  if (!variable.spec.trainable()) return error("is for a variable that is not trainable");
  if (piece.slot < block_.first || piece.slot >= block_.end()) {
    return error(absl::StrCat("is in a contribution to ", block_.ToString()));
  }
  if (piece.offset < 0 || piece.offset >= variable.elements || piece.offset % kSegmentElements != 0) {
    return error(absl::StrCat("is not a segment of ", kSegmentElements, " of its ", variable.elements, " elements"));
  }
  const int index = variable.first_segment + static_cast<int>(piece.offset / kSegmentElements);
  std::string storage;
  const absl::Status status = CheckDifferences(piece.content.Bytes(&storage), layout_.segments()[index].elements);
  return status.ok() ? status : error(absl::StrCat("is malformed: ", status.message()));
}

absl::Status ContributionChecker::MarkPiece(const StepPiece& piece) {
  const auto& variable = layout_.variables()[piece.variable];
  int segment = variable.first_segment + static_cast<int>(piece.offset / kSegmentElements);
  const size_t base = piece.sparse ? static_cast<size_t>(piece.slot - block_.first) * layout_.segments().size() : 0;
  // A sparse piece is one segment, no matter how few of its elements it holds.
  const int64_t elements = piece.sparse ? 1 : piece.content.size();
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

absl::Status ContributionChecker::CheckWhole() const {
  const int64_t expected = layout_.num_trainable_segments() * pieces_of_a_segment();
  if (num_segments_ == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the contribution to ", DescribeBlock(step_, block_), " has ",
                                                 num_segments_, " of ", expected, " pieces of ", kSegmentElements,
                                                 " elements"));
}

absl::Status CheckEmpty(const StepFrame& frame) {
  if (frame.end_of_input) {
    return absl::InvalidArgumentError("the end of the input is said without a block of slots");
  }
  if (frame.gradients.empty() && frame.reports.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("gradients or reports without a block of slots");
}

StepFrameLimits FrameLimitsOf(const ParameterLayout& layout, int64_t slots, bool sparse) {
  StepFrameLimits limits;
  limits.reports = slots;
  limits.pieces = static_cast<int64_t>(layout.segments().size()) * (sparse ? slots : 1);
  limits.bytes += 16 * 8 * static_cast<int64_t>(layout.variables().size());  // digests: kNumberBytes for each byte
  // The objects for a report and for an update value take about 200 bytes each. Workers send at most 1 MiB of reports
  // in a frame.
  limits.bytes += std::min<int64_t>(slots * MaxSummaryBytes(layout), 64 * kMaxSummaryBytes);
  limits.bytes += slots * (200 * (1 + static_cast<int64_t>(layout.update_ops().size())) + UpdateBytes(layout));
  return limits;
}

}  // namespace lockstep
