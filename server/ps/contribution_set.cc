#include "server/ps/contribution_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "common/tensor/sparse_differences.h"
#include "server/ps/all_finite.h"

namespace lockstep {
namespace {

constexpr int64_t kSegmentElements = ParameterLayout::kSegmentElements;

// The differences of a sparse piece in one run, copied into `storage` if they lie in several.
absl::string_view BytesOf(const StepPiece& piece, std::string* storage) {
  const size_t bytes = piece.content.bytes();
  if (piece.content.SingleRun() != nullptr) return {piece.content.SingleRun(), bytes};
  storage->resize(bytes);
  piece.content.CopyBytes(&(*storage)[0]);
  return *storage;
}

}  // namespace

ContributionSet::ContributionSet(VariableStore* store, int64_t slots)
    : store_(store),
      layout_(store->layout()),
      slots_(slots),
      segments_left_(layout_.num_trainable_segments()),
      reports_(slots) {
  segments_.reserve(layout_.segments().size());
  for (size_t i = 0; i < layout_.segments().size(); ++i) {
    const auto& segment = layout_.segments()[i];
    const bool trainable = layout_.variables()[segment.variable].spec.trainable();
    SlotTree::Memory memory;
    memory.home = store->NextValues(static_cast<int>(i));
    if (segment.elements == kSegmentElements) memory.pool = store->segment_pool();
    const DataType type = store->compression().gradients;
    segments_.push_back(trainable ? std::make_unique<Segment>(slots, segment.elements, memory, type) : nullptr);
  }
  finished_.reserve(segments_.size());
}

absl::Status ContributionSet::CheckReport(const SlotBlock& block, const SlotReport& report) const {
  if (report.slot() < block.first || report.slot() >= block.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a report for slot ", report.slot(), " in a contribution to ", block.ToString()));
  }
  const auto& ops = layout_.update_ops();
  if (report.update_size() != static_cast<int>(ops.size())) {
    return absl::InvalidArgumentError(absl::StrCat("the report of slot ", report.slot(), " has ", report.update_size(),
                                                   " update values; the model has ", ops.size(), " update ops"));
  }
  for (int i = 0; i < report.update_size(); ++i) {
    const size_t expected = static_cast<size_t>(layout_.variables()[ops[i].variable].elements) * sizeof(float);
    if (report.update(i).size() != expected) {
      return absl::InvalidArgumentError(absl::StrCat("the update of ", ops[i].spec.variable(), " for slot ",
                                                     report.slot(), " has ", report.update(i).size(),
                                                     " bytes, expected ", expected));
    }
  }
  return absl::OkStatus();
}

absl::Status ContributionSet::AddReports(const SlotBlock& block, absl::Span<const SlotReport> reports) {
  std::vector<bool> seen(block.count, false);
  for (const SlotReport& report : reports) {
    RETURN_IF_ERROR(CheckReport(block, report));
    if (seen[report.slot() - block.first]) {
      return absl::InvalidArgumentError(absl::StrCat("two reports for slot ", report.slot()));
    }
    seen[report.slot() - block.first] = true;
  }
  if (static_cast<int64_t>(reports.size()) != block.count) {
    return absl::InvalidArgumentError(
        absl::StrCat(reports.size(), " reports in a contribution to ", block.ToString(), ", expected ", block.count));
  }
  MutexLock lock(&mutex_);
  for (const SlotReport& report : reports) {
    Slot& slot = reports_[report.slot()];
    if (slot.reported) continue;
    slot.reported = true;
    slot.loss = report.loss();
    for (const std::string& update : report.update()) {
      std::vector<float> values(update.size() / sizeof(float));
      std::memcpy(values.data(), update.data(), update.size());
      if (slot.non_finite_update < 0 && !AllFinite(values.data(), static_cast<int64_t>(values.size()))) {
        slot.non_finite_update = static_cast<int>(slot.updates.size());
      }
      slot.updates.push_back(std::move(values));
    }
  }
  return absl::OkStatus();
}

absl::Status ContributionSet::CheckVariable(const StepPiece& piece) const {
  if (piece.variable < 0 || piece.variable >= static_cast<int64_t>(layout_.variables().size())) {
    return absl::InvalidArgumentError(absl::StrCat("a gradient for variable number ", piece.variable,
                                                   "; the model has ", layout_.variables().size(), " variables"));
  }
  return absl::OkStatus();
}

absl::Status ContributionSet::CheckPiece(const StepPiece& piece) const {
  RETURN_IF_ERROR(CheckVariable(piece));
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

absl::Status ContributionSet::CheckSparsePiece(const SlotBlock& block, const StepPiece& piece) const {
  RETURN_IF_ERROR(CheckVariable(piece));
  const auto& variable = layout_.variables()[piece.variable];
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("the gradient of ", variable.spec.name(), " for slot ", piece.slot,
                                                   " at element ", piece.offset, " ", what));
  };
  if (!variable.spec.trainable()) return error("is for a variable that is not trainable");
  if (piece.slot < block.first || piece.slot >= block.end()) {
    return error(absl::StrCat("is in a contribution to ", block.ToString()));
  }
  if (piece.offset < 0 || piece.offset >= variable.elements || piece.offset % kSegmentElements != 0) {
    return error(absl::StrCat("is not a segment of ", kSegmentElements, " of its ", variable.elements, " elements"));
  }
  const int index = variable.first_segment + static_cast<int>(piece.offset / kSegmentElements);
  std::string storage;
  const absl::Status status = CheckDifferences(BytesOf(piece, &storage), layout_.segments()[index].elements);
  return status.ok() ? status : error(absl::StrCat("is malformed: ", status.message()));
}

bool ContributionSet::Apply(int index, const SlotTree::Result& result, Segment* segment) {
  if (result.outcome != SlotTree::Outcome::kComplete) return false;
  const ParameterLayout::Segment& place = layout_.segments()[index];
  if (!AllFinite(result.sum, place.elements)) {
    non_finite_variable_ = place.variable;
    return false;
  }
  segments_begun_.fetch_add(1, std::memory_order_acq_rel);
  store_->ApplySegment(index, result.sum, static_cast<float>(slots_));
  segment->tree.ReleaseMemory();
  return true;
}

void ContributionSet::NoteApplied(int index) {
  {
    MutexLock lock(&mutex_);
    finished_.push_back(index);
  }
  segments_left_.fetch_sub(1, std::memory_order_acq_rel);
}

bool ContributionSet::AddSparsePiece(const StepPiece& piece) {
  const auto& variable = layout_.variables()[piece.variable];
  const int index = variable.first_segment + static_cast<int>(piece.offset / kSegmentElements);
  Segment& segment = *segments_[index];
  const SlotBlock slot{piece.slot, 1};
  std::string storage;
  const absl::string_view differences = BytesOf(piece, &storage);
  bool complete = false;
  {
    MutexLock lock(&segment.mutex);
    if (segment.tree.Covers(slot)) return false;
    const float* const gradient = store_->AddToEstimate(index, piece.slot, differences);
    complete =
        Apply(index, segment.tree.Add(slot, FloatChunks(gradient, layout_.segments()[index].elements), 0), &segment);
  }
  if (complete) NoteApplied(index);
  return true;
}

bool ContributionSet::AddPiece(const SlotBlock& block, const StepPiece& piece) {
  if (piece.sparse) return AddSparsePiece(piece);
  const auto& variable = layout_.variables()[piece.variable];
  bool any_new = false;
  int index = variable.first_segment + static_cast<int>(piece.offset / kSegmentElements);
  for (int64_t first = 0; first < piece.content.size(); ++index) {
    Segment& segment = *segments_[index];
    const int64_t elements = layout_.segments()[index].elements;
    bool complete = false;
    {
      MutexLock lock(&segment.mutex);
      const SlotTree::Result result = segment.tree.Add(block, piece.content, first);
      any_new = any_new || result.outcome != SlotTree::Outcome::kCovered;
      complete = Apply(index, result, &segment);
    }
    if (complete) NoteApplied(index);
    first += elements;
  }
  return any_new;
}

absl::optional<ContributionSet::NonFinite> ContributionSet::FindNonFinite(const SlotBlock& block) const {
  const auto name = [this](int variable) { return layout_.variables()[variable].spec.name(); };
  const int variable = non_finite_variable_;
  if (variable >= 0) return NonFinite{absl::StrCat("gradient of ", name(variable)), absl::nullopt};
  MutexLock lock(&mutex_);
  for (int64_t number = block.first; number < block.end(); ++number) {
    const Slot& slot = reports_[number];
    if (!std::isfinite(slot.loss)) return NonFinite{"loss", number};
    if (slot.non_finite_update < 0) continue;
    const int updated = layout_.update_ops()[slot.non_finite_update].variable;
    return NonFinite{absl::StrCat("update of ", name(updated)), number};
  }
  return absl::nullopt;
}

std::vector<int> ContributionSet::finished_segments() const {
  MutexLock lock(&mutex_);
  return finished_;
}

size_t ContributionSet::num_finished_segments() const {
  MutexLock lock(&mutex_);
  return finished_.size();
}

double ContributionSet::MeanLoss() const {
  MutexLock lock(&mutex_);
  double sum = 0;
  for (const Slot& slot : reports_) sum += slot.loss;
  return sum / static_cast<double>(slots_);
}

std::vector<std::vector<std::vector<float>>> ContributionSet::TakeUpdates() {
  MutexLock lock(&mutex_);
  std::vector<std::vector<std::vector<float>>> updates;
  updates.reserve(reports_.size());
  for (Slot& slot : reports_) updates.push_back(std::move(slot.updates));
  return updates;
}

}  // namespace lockstep
