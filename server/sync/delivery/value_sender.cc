#include "lockstep/server/sync/delivery/value_sender.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"

namespace lockstep {
namespace {

// Values in one reply frame: large enough to cost few writes, small enough that the first arrives early.
constexpr int64_t kFrameElements = 1 << 20;

}  // namespace

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
  return sent < (version == step ? layout_.segments().size() : num_final);
}

void ValueSender::SendAgain(int64_t step, absl::Span<const int> order, absl::Span<const int> segments) {
  if (step_ != step) return;
  for (const int segment : order.subspan(0, cursor_)) {
    if (absl::c_linear_search(segments, segment) && !absl::c_linear_search(again_, segment)) again_.push_back(segment);
  }
}

bool ValueSender::Add(int segment, const PublishedValues& values, int64_t* elements, StepReplyFrame* reply) const {
  const ParameterLayout::Segment& place = layout_.segments()[segment];
  if (*elements > 0 && *elements + place.elements > kFrameElements) return false;
  *elements += place.elements;
  StepPiece piece;
  piece.variable = place.variable;
  piece.offset = place.offset;
  piece.content = values.Segment(layout_, place);
  reply->values.push_back(std::move(piece));
  return true;
}

void ValueSender::Fill(absl::Span<const int> final_segments, std::shared_ptr<const PublishedValues> values,
                       StepReplyFrame* reply) {
  int64_t elements = 0;
  while (!again_.empty() && Add(again_.back(), *values, &elements, reply)) again_.pop_back();
  while (cursor_ < final_segments.size() && Add(final_segments[cursor_], *values, &elements, reply)) ++cursor_;
  reply->values_step = step_;
  reply->values_owner = std::move(values);
}

}  // namespace lockstep
