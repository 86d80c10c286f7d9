#include "lockstep/worker/session/block/block_gradients.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/trace_recorder.h"
#include "lockstep/common/step/report_parts.h"
#include "lockstep/common/tensor/float_chunks.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/worker/session/block/check_update.h"
#include "lockstep/worker/session/block/gradient_norm.h"

namespace lockstep {
namespace {

size_t PopulationCount(int64_t n) {
  size_t count = 0;
  for (; n > 0; n &= n - 1) ++count;
  return count;
}

}  // namespace

BlockGradients::BlockGradients(const ParameterLayout* layout, const std::atomic<bool>* wanted,
                               const Compression& compression, NaNs nans)
    : layout_(*layout),
      wanted_(wanted),
      max_summary_bytes_(MaxSummaryBytes(*layout)),
      type_(compression.gradients),
      nans_(nans),
      encoder_(compression.top_k > 0 ? std::make_unique<DifferenceEncoder>(compression.top_k) : nullptr),
      differences_(layout->variables().size()) {}

void BlockGradients::BeginBlock(StepChannel* channel, const v1::Token& token, absl::Span<float* const> estimates) {
  channel_ = channel;
  token_ = token;
  estimates_ = estimates;
  for (auto& differences : differences_) differences.clear();
  reports_.clear();
  reports_sent_ = false;
  digests_.assign(token.digest() ? layout_.variables().size() : 0, 0);
  status_ = absl::OkStatus();
}

void BlockGradients::EndBlock() {
  if (digests_.empty() || !status_.ok()) return;
  std::vector<uint64_t> trainable;
  for (size_t i = 0; i < digests_.size(); ++i) {
    if (layout_.variables()[i].spec.trainable()) trainable.push_back(digests_[i]);
  }
  status_ = channel_->SendDigests(trainable);
}

void BlockGradients::BeginSlot(int64_t slot) {
  reports_.emplace_back();
  CHECK_EQ(slot, token_.first_slot() + index());
  reports_.back().set_slot(slot);
}

bool BlockGradients::OnLoss(float loss) {
  reports_.back().set_loss(loss);
  return wanted_->load(std::memory_order_relaxed);
}

void BlockGradients::OnWeight(float weight) {
  if (weight != 1) reports_.back().set_weight(weight);
}

void BlockGradients::OnUpdate(int index, Elements value) {
  status_.Update(CheckUpdate(layout_, index, value));
  v1::SlotReport& report = reports_.back();
  while (report.update_size() <= index) report.add_update();
  report.mutable_update(index)->assign(value.bytes().data(), value.bytes().size());
}

absl::Status BlockGradients::OnSummary(const v1::Summary& summary) {
  return Append(summary, reports_.back().mutable_summary());
}

absl::Status BlockGradients::OnMetric(const std::string& name, float value) {
  v1::Summary summary;
  v1::Summary::Value* const metric = summary.add_value();
  metric->set_tag(name);
  metric->set_simple_value(value);
  return Append(summary, reports_.back().mutable_metrics());
}

absl::Status BlockGradients::Append(const v1::Summary& summary, std::string* field) {
  // Two serialized messages, concatenated, form one message with the values of both.
  const v1::SlotReport& report = reports_.back();
  const auto together =
      static_cast<int64_t>(report.summary().size() + report.metrics().size() + summary.ByteSizeLong());
  if (together > max_summary_bytes_) {
    const absl::Status dropped = absl::ResourceExhaustedError(
        absl::StrCat("a summary of slot ", reports_.back().slot(), " is dropped: with it the slot would have ",
                     together, " bytes of summaries, at most ", max_summary_bytes_, " are allowed"));
    LOG_EVERY_N(WARNING, 100) << dropped.message();
    return dropped;
  }
  summary.AppendToString(field);
  return absl::OkStatus();
}

float* BlockGradients::Partial(size_t depth, int variable) {
  if (depth == 0) return channel_->GradientBuffer(variable);
  while (partial_.size() < depth)
    partial_.emplace_back(static_cast<size_t>(layout_.trained_elements()) * sizeof(float));
  return partial_[depth - 1].as<float>() + layout_.variables()[variable].flat_offset;
}

float* BlockGradients::GradientBuffer(int variable) {
  return Partial(encoder_ != nullptr ? 0 : PopulationCount(index()), variable);
}

void BlockGradients::OnGradient(int variable) {
  if (reports_.back().has_weight()) {
    const auto elements = static_cast<size_t>(layout_.variables()[variable].elements);
    Scale(reports_.back().weight(), {GradientBuffer(variable), elements});
  }
  const bool last = index() + 1 == token_.slot_count();
  if (last && !reports_sent_) {
    reports_sent_ = true;
    if (status_.ok()) status_ = channel_->SendReports(reports_);
  }
  if (!digests_.empty()) {
    const auto elements = static_cast<size_t>(layout_.variables()[variable].elements);
    digests_[variable] = GradientDigest({GradientBuffer(variable), elements}, nans_);
  }
  encoder_ != nullptr ? CompressAndSend(variable, last) : SumAndSend(variable, last);
}

void BlockGradients::CompressAndSend(int variable, bool last) {
  const auto& place = layout_.variables()[variable];
  const float* const gradient = GradientBuffer(variable);
  float* const estimate = estimates_[index()] + place.flat_offset;
  for (int i = 0; i < place.num_segments; ++i) {
    const auto& segment = layout_.segments()[place.first_segment + i];
    std::string bytes = encoder_->Encode(gradient + segment.offset, estimate + segment.offset, segment.elements);
    AddDifferences(bytes, estimate + segment.offset);
    differences_[variable].push_back({token_.first_slot() + index(), segment.offset, std::move(bytes)});
  }
  if (!last) return;
  for (const Differences& differences : differences_[variable]) {
    if (!status_.ok()) return;
    TraceSpan span("send");
    status_.Update(channel_->SendDifferences(differences.slot, variable, differences.offset, differences.bytes));
  }
}

void BlockGradients::SumAndSend(int variable, bool last) {
  // Adds partial sums in the way that a binary counter carries: two sums over the same number of slots are combined.
  // After the last slot, all remaining sums are combined, from right to left.
  const int64_t elements = layout_.variables()[variable].elements;
  RoundTo(type_, elements, GradientBuffer(variable));
  int64_t rest = index();
  for (size_t depth = PopulationCount(index()); depth > 0 && (last || rest % 2 == 1); --depth, rest /= 2) {
    FloatChunks(Partial(depth, variable), elements).AddTo(0, elements, Partial(depth - 1, variable));
    RoundTo(type_, elements, Partial(depth - 1, variable));
  }
  if (last && status_.ok()) {
    TraceSpan span("send");
    status_.Update(channel_->SendGradient(variable));
  }
}

}  // namespace lockstep
