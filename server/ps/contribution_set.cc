#include "lockstep/server/ps/contribution_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/process/trace_recorder.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/kernels/rounding.h"

namespace lockstep {
namespace {

constexpr int64_t kSegmentElements = ParameterLayout::kSegmentElements;

}  // namespace

bool SlotTree::Covers(const SlotBlock& block) const {
  return complete_ ||
         std::any_of(nodes_.begin(), nodes_.end(), [&block](const Node& node) { return node.block.Contains(block); });
}

void SlotTree::Place(Node* node) const {
  const bool home_is_taken =
      std::any_of(nodes_.begin(), nodes_.end(), [this](const Node& other) { return other.sum == memory_.home; });
  if (memory_.home != nullptr && !home_is_taken) {
    node->sum = memory_.home;
    return;
  }
  node->buffer = memory_.pool != nullptr
                     ? memory_.pool->Get()
                     : std::make_shared<AlignedBuffer>(static_cast<size_t>(elements_) * sizeof(float));
  node->sum = node->buffer->as<float>();
}

SlotTree::Result SlotTree::Add(const SlotBlock& block, const FloatChunks& content, int64_t first) {
  Result result;
  if (Covers(block)) return result;
  nodes_.erase(
      std::remove_if(nodes_.begin(), nodes_.end(), [&block](const Node& node) { return block.Contains(node.block); }),
      nodes_.end());
  result.outcome = Outcome::kAdded;

  const auto take_sibling = [this](const SlotBlock& of, Node* out) {
    const auto sibling = SiblingOf(of, slots_);
    if (!sibling) return false;
    const auto it = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.block == *sibling; });
    if (it == nodes_.end()) return false;
    *out = std::move(*it);
    nodes_.erase(it);
    return true;
  };

  // Reads `content` in place for the first addition. The addition of two floats is commutative, so the arrival order of
  // the two siblings does not matter.
  Node node;
  if (take_sibling(block, &node)) {
    content.AddTo(first, elements_, node.sum);
    RoundTo(type_, elements_, node.sum);
    node.block = Join(node.block, block);
  } else {
    node.block = block;
    if (block.count == slots_) {
      complete_ = true;
      result.outcome = Outcome::kComplete;
      result.sum = content.Contiguous(first, elements_);
      if (result.sum != nullptr) return result;
    }
    Place(&node);
    content.CopyTo(first, elements_, node.sum);
  }
  for (Node sibling; take_sibling(node.block, &sibling);) {
    FloatChunks(sibling.sum, elements_).AddTo(0, elements_, node.sum);
    RoundTo(type_, elements_, node.sum);
    node.block = Join(node.block, sibling.block);
  }
  nodes_.push_back(std::move(node));
  if (nodes_.back().block.count == slots_) {
    complete_ = true;
    result.outcome = Outcome::kComplete;
    result.sum = nodes_.back().sum;
  }
  return result;
}

void SlotTree::ReleaseMemory() { nodes_.clear(); }

ContributionSet::ContributionSet(VariableStore* store, int64_t slots, const Options& options)
    : store_(store),
      layout_(store->layout()),
      slots_(slots),
      skips_non_finite_(options.skips_non_finite),
      applies_sum_(options.applies_sum),
      segments_left_(layout_.num_trainable_segments()),
      sums_left_(layout_.num_trainable_segments()),
      divisor_(applies_sum_ ? 1 : static_cast<float>(slots)),
      reports_(slots),
      reports_left_(slots) {
  segments_.reserve(layout_.segments().size());
  for (size_t i = 0; i < layout_.segments().size(); ++i) {
    const auto& segment = layout_.segments()[i];
    if (!layout_.variables()[segment.variable].spec.trainable()) {
      segments_.push_back(nullptr);
      continue;
    }
    SlotTree::Memory memory;
    memory.home = store->NextValues(static_cast<int>(i));
    if (segment.elements == kSegmentElements) memory.pool = store->segment_pool();
    const v1::DataType type = store->compression().gradients;
    segments_.push_back(std::make_unique<Segment>(slots, segment.elements, memory, type));
  }
  finished_.reserve(segments_.size());
}

void ContributionSet::Restart() {
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i] == nullptr) continue;
    MutexLock lock(&segments_[i]->mutex);
    segments_[i]->tree.Restart(store_->NextValues(static_cast<int>(i)));
  }
  segments_left_ = layout_.num_trainable_segments();
  sums_left_ = layout_.num_trainable_segments();
  non_finite_variable_ = -1;
  has_non_finite_report_ = false;
  MutexLock lock(&mutex_);
  for (Slot& slot : reports_) slot = Slot();
  reports_left_ = slots_;
  if (!applies_sum_) divisor_ = static_cast<float>(slots_);
  has_no_mean_ = false;
  finished_.clear();
}

void ContributionSet::ReleaseMemory() {
  for (const auto& segment : segments_) {
    if (segment == nullptr) continue;
    MutexLock lock(&segment->mutex);
    segment->tree.ReleaseMemory();
  }
}

void ContributionSet::AddReports(absl::Span<const v1::SlotReport> reports) {
  MutexLock lock(&mutex_);
  for (const v1::SlotReport& report : reports) {
    Slot& slot = reports_[report.slot()];
    if (slot.reported) continue;
    slot.reported = true;
    slot.loss = report.loss();
    if (report.has_weight()) slot.weight = report.weight();
    if (--reports_left_ == 0) {
      const auto total = static_cast<float>(TotalWeight());
      has_no_mean_ = total == 0 || std::isinf(total);
      if (!applies_sum_) divisor_ = total;
    }
    slot.stop = report.stop();
    slot.summary = report.summary();
    slot.metrics = report.metrics();
    for (int op = 0; op < report.update_size(); ++op) {
      const std::string& update = report.update(op);
      std::vector<float> values((update.size() + sizeof(float) - 1) / sizeof(float));
      std::memcpy(values.data(), update.data(), update.size());
      const bool has_floats = layout_.variables()[layout_.update_ops()[op].variable].spec.dtype() == v1::DT_FLOAT;
      if (has_floats && slot.non_finite_update < 0 &&
          !AllValuesFinite(static_cast<int64_t>(values.size()), values.data())) {
        slot.non_finite_update = op;
      }
      slot.updates.push_back(std::move(values));
    }
    if (!std::isfinite(slot.loss) || slot.non_finite_update >= 0) has_non_finite_report_ = true;
  }
}

bool ContributionSet::Apply(int index, const SlotTree::Result& result, Segment* segment) {
  if (result.outcome != SlotTree::Outcome::kComplete) return false;
  const ParameterLayout::Segment& place = layout_.segments()[index];
  const bool finite = AllValuesFinite(place.elements, result.sum);
  if (!finite) non_finite_variable_ = place.variable;
  if (!finite || has_no_mean_) {
    if (!skips_non_finite_) return false;
  } else if (store_->holds_segments()) {
    store_->HoldSegment(index, result.sum, divisor_);
  } else {
    TraceSpan span("apply");
    store_->ApplySegment(index, result.sum, divisor_);
  }
  segment->tree.ReleaseMemory();
  return true;
}

double ContributionSet::TotalWeight() const {
  double sum = 0;
  for (const Slot& slot : reports_) sum += slot.weight;
  return sum;
}

void ContributionSet::NoteHeld() {
  if (sums_left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  if (non_finite_variable_ < 0 && !has_no_mean_) {
    TraceSpan span("apply");
    store_->ApplyHeld(divisor_);
  }
  {
    MutexLock lock(&mutex_);
    for (size_t i = 0; i < segments_.size(); ++i) {
      if (segments_[i] != nullptr) finished_.push_back(static_cast<int>(i));
    }
  }
  segments_left_.store(0, std::memory_order_release);
}

void ContributionSet::NoteApplied(int index) {
  if (store_->holds_segments()) return NoteHeld();
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
  const absl::string_view differences = piece.content.Bytes(&storage);
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
  TraceSpan span("receive");
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

absl::optional<NonFiniteValue> ContributionSet::FindNonFinite(const SlotBlock& block) const {
  const auto name = [this](int variable) { return layout_.variables()[variable].spec.name(); };
  const int variable = non_finite_variable_;
  if (variable >= 0) return NonFiniteValue{absl::StrCat("gradient of ", name(variable)), absl::nullopt};
  if (!has_no_mean_ && !has_non_finite_report_) return absl::nullopt;
  MutexLock lock(&mutex_);
  if (has_no_mean_) {
    return NonFiniteValue{absl::StrCat("mean over the slots, whose weights sum to ", TotalWeight(), ","),
                          absl::nullopt};
  }
  for (int64_t number = block.first; number < block.end(); ++number) {
    const Slot& slot = reports_[number];
    if (!std::isfinite(slot.loss)) return NonFiniteValue{"loss", number};
    if (slot.non_finite_update < 0) continue;
    const int updated = layout_.update_ops()[slot.non_finite_update].variable;
    return NonFiniteValue{absl::StrCat("update of ", name(updated)), number};
  }
  return absl::nullopt;
}

size_t ContributionSet::num_finished_segments() const {
  MutexLock lock(&mutex_);
  return finished_.size();
}

ContributionSet::Results ContributionSet::TakeResults() {
  MutexLock lock(&mutex_);
  Results results;
  double loss = 0;
  for (Slot& slot : reports_) {
    loss += static_cast<double>(slot.weight) * slot.loss;
    results.stop = results.stop || slot.stop;
    if (!slot.summary.empty()) results.summaries.push_back(std::move(slot.summary));
    if (!slot.metrics.empty()) results.metrics.push_back({slot.weight, std::move(slot.metrics)});
    if (!layout_.update_ops().empty()) results.updates.push_back(std::move(slot.updates));
  }
  results.mean_loss = loss / TotalWeight();
  return results;
}

}  // namespace lockstep
