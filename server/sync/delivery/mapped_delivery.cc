#include "lockstep/server/sync/delivery/mapped_delivery.h"

#include <utility>

namespace lockstep {

bool MappedDelivery::Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) {
  return streams() ? streamed_.Fill(token, reply) : true;
}

void MappedDelivery::Attach(const StepToken& token, StepReplyFrame* reply) {
  if (streams()) return streamed_.Attach(token, reply);
  reply->values_memory = *shard_.values_memory();
  auto values = shard_.values();
  const PublishedValues* const pinned = values.get();
  values_ = {pins_->Pin(token.step, stream_, std::move(values)), pinned};
}

}  // namespace lockstep
