#include "lockstep/server/sync/delivery/value_sender.h"

#include <algorithm>
#include <utility>

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
  }
  return step_;
}

bool ValueSender::HasNext(int64_t step, bool may_run_ahead, size_t num_final) const {
  const int64_t wanted = Wanted(step, may_run_ahead);
  const int64_t version = std::max(wanted, step_);
  const size_t sent = version == step_ ? cursor_ : 0;
  return sent < (version == step ? layout_.segments().size() : num_final);
}

void ValueSender::Fill(absl::Span<const int> final_segments, std::shared_ptr<const PublishedValues> values,
                       StepReplyFrame* reply) {
  int64_t elements = 0;
  while (cursor_ < final_segments.size()) {
    const ParameterLayout::Segment& segment = layout_.segments()[final_segments[cursor_]];
    if (elements > 0 && elements + segment.elements > kFrameElements) break;
    elements += segment.elements;
    StepPiece piece;
    piece.variable = segment.variable;
    piece.offset = segment.offset;
    piece.content = values->Segment(layout_, segment);
    reply->values.push_back(std::move(piece));
    ++cursor_;
  }
  reply->values_step = step_;
  reply->values_owner = std::move(values);
}

}  // namespace lockstep
