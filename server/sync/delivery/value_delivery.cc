#include "lockstep/server/sync/delivery/value_delivery.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "lockstep/server/sync/delivery/estimate_sender.h"

namespace lockstep {
namespace {

// Number of values in one reply frame: large enough that few writes are needed, small enough that the first values
// arrive early.
constexpr int64_t kFrameElements = 1 << 20;

// Pins `memory`, which keeps the values of `step` and the constant variables alive.
std::shared_ptr<const void> PinVersion(int64_t step, const StepShard& shard, const PinHolder& stream,
                                       std::shared_ptr<const void> memory, VersionPins* pins) {
  if (shard.layout().constant_elements() > 0) memory = pins->PinConstants(stream, std::move(memory));
  return pins->Pin(step, stream, std::move(memory));
}

// Delivery to a worker in the chief's process, which reads the values in place.
class InProcessDelivery : public ValueDelivery {
 public:
  // `shard` must outlive this.
  explicit InProcessDelivery(const StepShard* shard) : shard_(*shard) {}

  absl::optional<int64_t> Fill(const absl::optional<StepToken>&, StepReplyFrame*) override { return shard_.step(); }
  void Attach(const StepToken&, StepReplyFrame*) override {
    values_ = shard_.values();
    estimates_ = shard_.estimates();
  }
  // If the values were kept, they would be a third version in memory during the next step.
  void Release() override { values_.reset(); }
  std::shared_ptr<const PublishedValues> values() const override { return values_; }
  std::shared_ptr<const GradientEstimates> estimates() const override { return estimates_; }

 private:
  const StepShard& shard_;
  std::shared_ptr<const PublishedValues> values_;
  std::shared_ptr<const GradientEstimates> estimates_;
};

// Delivery in replies, piece by piece, for the values and the estimates. A worker that has done its part of the step
// gets the next values while they are still being computed. Replies that the worker has not read yet are pinned.
class StreamedDelivery : public ValueDelivery {
 public:
  // `shard` and `pins` must outlive this object.
  StreamedDelivery(const PinHolder& stream, const StepShard* shard, VersionPins* pins, bool finishes_versions);

  absl::optional<int64_t> Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) override;
  bool HasEarlyValues() const override;
  // The version is no longer needed here, because the worker computes with its own copy.
  void Attach(const StepToken&, StepReplyFrame*) override { begun_.reset(); }
  void OnValuesSet(absl::Span<const int> segments) override;
  void OnContributed(const StepToken& token) override { estimates_.Advance(token.step, token.block); }
  bool streams() const override { return true; }

 private:
  // The version that a token needs.
  struct Version {
    int64_t step = 0;
    std::shared_ptr<const PublishedValues> values;
    std::vector<int> order;
  };
  Version PresentVersion() const { return {shard_.step(), shard_.values(), shard_.segment_order()}; }
  // Adds to the reply the segments that the worker lacks of the token's version or, if `is_ahead`, of the next version.
  void FillVersion(bool is_ahead, StepReplyFrame* reply);
  bool FillEstimates(const StepToken& token, StepReplyFrame* reply);

  const PinHolder stream_;
  const StepShard& shard_;
  VersionPins* const pins_;
  const bool finishes_versions_;
  ValueSender values_;
  // With finishes_versions_, the version that is being sent for a token that has not been sent yet.
  absl::optional<Version> begun_;
  StepToken begun_for_;
  EstimateSender estimates_;
};

StreamedDelivery::StreamedDelivery(const PinHolder& stream, const StepShard* shard, VersionPins* pins,
                                   bool finishes_versions)
    : stream_(stream), shard_(*shard), pins_(pins), finishes_versions_(finishes_versions), values_(&shard->layout()) {}

void StreamedDelivery::OnValuesSet(absl::Span<const int> segments) {
  values_.SendAgain(shard_.step(), shard_.segment_order(), segments);
  if (begun_ && begun_->step == shard_.step()) begun_ = PresentVersion();
}

absl::optional<int64_t> StreamedDelivery::Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) {
  // The token for which this version was started may have become void before it was sent.
  if (!token || (begun_ && !(begun_for_ == *token))) begun_.reset();
  if (token && finishes_versions_ && !begun_) {
    begun_ = PresentVersion();
    begun_for_ = *token;
  }
  const int64_t step = begun_ ? begun_->step : shard_.step();
  // A worker that has a token needs nothing of the next version until it has sent its contribution.
  const bool may_run_ahead = !token && shard_.num_finished_segments() > 0;
  const bool is_ahead = values_.Advance(step, may_run_ahead) != step;
  if (!token) {
    FillVersion(is_ahead, reply);
    return absl::nullopt;
  }
  const std::shared_ptr<const PublishedValues> values = begun_ ? begun_->values : shard_.values();
  // Without a token, no constant variables are sent, because the worker may still be computing with the ones it has.
  if (values_.FillConstants(*values, reply)) {
    reply->values_owner = pins_->PinConstants(stream_, std::move(reply->values_owner));
  } else {
    FillVersion(is_ahead, reply);
  }
  if (!values_.holds(step) || !values_.HoldsConstants(*values)) return absl::nullopt;
  return FillEstimates(*token, reply) ? absl::make_optional(step) : absl::nullopt;
}

void StreamedDelivery::FillVersion(bool is_ahead, StepReplyFrame* reply) {
  if (begun_ && !is_ahead) {
    values_.Fill(begun_->order, begun_->values, reply);
  } else if (!is_ahead) {
    values_.Fill(shard_.segment_order(), shard_.values(), reply);
  } else if (auto next = shard_.next_values(); next != nullptr && !begun_) {
    values_.Fill(shard_.finished_segments(), std::move(next), reply);
  }
  if (reply->values.empty()) return;
  reply->values_owner = PinVersion(reply->values_step, shard_, stream_, std::move(reply->values_owner), pins_);
}

bool StreamedDelivery::HasEarlyValues() const {
  const size_t num_final = shard_.num_finished_segments();
  return values_.HasNext(shard_.step(), /*may_run_ahead=*/num_final > 0, num_final);
}

bool StreamedDelivery::FillEstimates(const StepToken& token, StepReplyFrame* reply) {
  if (shard_.compression().top_k <= 0) return true;
  const bool all = estimates_.Feed(shard_.layout(), shard_.step(), shard_.estimates(), token.block, reply);
  if (reply->estimates_owner != nullptr) {
    reply->estimates_owner = pins_->Pin(shard_.step(), stream_, std::move(reply->estimates_owner));
  }
  return all;
}

// Delivery to a worker on the chief's machine, which maps the values. Replies name the memory, which is pinned and
// therefore unchanged until the worker ends its contribution or loses its stream. A version for which the system
// provided no shared memory is streamed instead.
class MappedDelivery : public ValueDelivery {
 public:
  // `shard` and `pins` must outlive this object. `shard` must not use compression.
  MappedDelivery(const PinHolder& stream, const StepShard* shard, VersionPins* pins, bool finishes_versions)
      : stream_(stream), shard_(*shard), pins_(pins), streamed_(stream, shard, pins, finishes_versions) {}

  absl::optional<int64_t> Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) override;
  bool HasEarlyValues() const override { return streams() && streamed_.HasEarlyValues(); }
  void Attach(const StepToken& token, StepReplyFrame* reply) override;
  void OnValuesSet(absl::Span<const int> segments) override { streamed_.OnValuesSet(segments); }
  // If the values were kept, they would be a third version in memory during the next step.
  void Release() override { values_.reset(); }
  // The memory may be reused while the worker still has it mapped. This is safe, because the stream is closed, so the
  // worker's results are refused.
  void OnClosed() override { values_.reset(); }
  bool streams() const override { return shard_.values_memory() == nullptr; }
  std::shared_ptr<const PublishedValues> values() const override { return values_; }

 private:
  const PinHolder stream_;
  const StepShard& shard_;
  VersionPins* const pins_;
  StreamedDelivery streamed_;
  std::shared_ptr<const PublishedValues> values_;  // pinned
};

absl::optional<int64_t> MappedDelivery::Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) {
  return streams() ? streamed_.Fill(token, reply) : shard_.step();
}

void MappedDelivery::Attach(const StepToken& token, StepReplyFrame* reply) {
  if (streams()) return streamed_.Attach(token, reply);
  reply->values_memory = *shard_.values_memory();
  if (shard_.constants_memory() != nullptr) reply->constants_memory = *shard_.constants_memory();
  auto values = shard_.values();
  const PublishedValues* const pinned = values.get();
  values_ = {PinVersion(shard_.step(), shard_, stream_, std::move(values), pins_), pinned};
}

}  // namespace

ValueSender::ValueSender(const ParameterLayout* layout) : layout_(*layout) {
  for (size_t i = 0; i < layout_.variables().size(); ++i) {
    const ParameterLayout::Variable& variable = layout_.variables()[i];
    if (variable.constant) {
      constants_.push_back({static_cast<int>(i)});
    } else {
      num_changing_segments_ += static_cast<size_t>(variable.num_segments);
    }
  }
}

int64_t ValueSender::Advance(int64_t step, bool may_run_ahead) {
  const int64_t wanted = Wanted(step, may_run_ahead);
  if (step_ < wanted) {
    if (complete()) held_step_ = step_;
    step_ = wanted;
    cursor_ = 0;
    again_.clear();
  }
  return step_;
}

bool ValueSender::HasNext(int64_t step, bool may_run_ahead, size_t num_final) const {
  const int64_t wanted = Wanted(step, may_run_ahead);
  const int64_t version = std::max(wanted, step_);
  if (version == step_ && !again_.empty()) return true;
  const size_t sent = version == step_ ? cursor_ : 0;
  return sent < (version == step ? num_changing_segments_ : num_final);
}

void ValueSender::SendAgain(int64_t step, absl::Span<const int> order, absl::Span<const int> segments) {
  if (step_ != step) return;
  for (const int segment : order.subspan(0, cursor_)) {
    if (absl::c_linear_search(segments, segment) && !absl::c_linear_search(again_, segment)) again_.push_back(segment);
  }
}

bool ValueSender::Add(int segment, const PublishedValues& values, int64_t* elements, StepReplyFrame* reply) const {
  const ParameterLayout::Segment& place = layout_.segments()[segment];
  // An int64 counts as two elements.
  const size_t size = std::max(layout_.variables()[place.variable].element_bytes, sizeof(float)) / sizeof(float);
  const int64_t added = place.elements * static_cast<int64_t>(size);
  if (*elements > 0 && *elements + added > kFrameElements) return false;
  *elements += added;
  StepPiece piece;
  piece.variable = place.variable;
  piece.offset = place.offset;
  piece.content = values.Segment(layout_, place);
  reply->values.push_back(std::move(piece));
  return true;
}

bool ValueSender::HoldsConstants(const PublishedValues& values) const {
  return constants_.empty() || held_constants_.lock() == values.constants;
}

bool ValueSender::FillConstants(const PublishedValues& values, StepReplyFrame* reply) {
  if (HoldsConstants(values)) return false;
  reply->values_step = step_;
  reply->values_owner = values.constants;
  int64_t elements = 0;
  for (Constant& constant : constants_) {
    const ParameterLayout::Variable& variable = layout_.variables()[constant.variable];
    const int64_t edition = values.constants->editions[constant.variable];
    if (constant.edition != edition) constant = {constant.variable, edition};
    for (; constant.segments < variable.num_segments; ++constant.segments) {
      if (!Add(variable.first_segment + constant.segments, values, &elements, reply)) return true;
    }
  }
  held_constants_ = values.constants;
  return elements > 0;
}

void ValueSender::Fill(absl::Span<const int> final_segments, std::shared_ptr<const PublishedValues> values,
                       StepReplyFrame* reply) {
  int64_t elements = 0;
  while (!again_.empty() && Add(again_.back(), *values, &elements, reply)) again_.pop_back();
  while (cursor_ < final_segments.size() && Add(final_segments[cursor_], *values, &elements, reply)) ++cursor_;
  reply->values_step = step_;
  reply->values_owner = std::move(values);
}

std::unique_ptr<ValueDelivery> NewValueDelivery(ValuePath path, const PinHolder& stream, const StepShard* shard,
                                                VersionPins* pins, bool finishes_versions) {
  switch (path) {
    case ValuePath::kInProcess:
      return std::make_unique<InProcessDelivery>(shard);
    case ValuePath::kShared:
      return std::make_unique<MappedDelivery>(stream, shard, pins, finishes_versions);
    case ValuePath::kStreamed:
      break;
  }
  return std::make_unique<StreamedDelivery>(stream, shard, pins, finishes_versions);
}

size_t MaxOldVersions(const StepShard& shard, int64_t bytes, int64_t slots) {
  const Compression& compression = shard.compression();
  const ParameterLayout& layout = shard.layout();
  int64_t trained_bytes = 0;  // for each trained element, in addition to its value
  if (compression.values != v1::DT_FLOAT) trained_bytes += sizeof(uint16_t);
  if (compression.top_k > 0) trained_bytes += slots * static_cast<int64_t>(sizeof(float));
  const int64_t version_bytes =
      layout.constants_offset() * static_cast<int64_t>(sizeof(float)) + layout.trained_elements() * trained_bytes;
  return static_cast<size_t>(std::max(kMinOldVersions, bytes / version_bytes));
}

}  // namespace lockstep
