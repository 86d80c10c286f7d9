#include "lockstep/server/sync/delivery/streamed_delivery.h"

#include <utility>

namespace lockstep {

StreamedDelivery::StreamedDelivery(const PinHolder& stream, const StepShard* shard, VersionPins* pins)
    : stream_(stream), shard_(*shard), pins_(pins), values_(&shard->layout()) {}

bool StreamedDelivery::Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) {
  const int64_t step = shard_.step();
  // A worker that has a token needs nothing of the next version before it has sent its contribution.
  const bool may_run_ahead = !token && shard_.num_finished_segments() > 0;
  if (values_.Advance(step, may_run_ahead) == step) {
    values_.Fill(shard_.segment_order(), shard_.values(), reply);
  } else if (auto next = shard_.next_values()) {
    values_.Fill(shard_.finished_segments(), std::move(next), reply);
  }
  if (!reply->values.empty()) {
    reply->values_owner = pins_->Pin(reply->values_step, stream_, std::move(reply->values_owner));
  }
  return token && values_.holds(step) && FillEstimates(*token, reply);
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

}  // namespace lockstep
