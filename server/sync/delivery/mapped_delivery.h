#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_MAPPED_DELIVERY_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_MAPPED_DELIVERY_H_

#include <memory>

#include "lockstep/server/sync/delivery/streamed_delivery.h"
#include "lockstep/server/sync/delivery/value_delivery.h"
#include "lockstep/server/sync/delivery/version_pins.h"
#include "lockstep/server/sync/shard/step_shard.h"

namespace lockstep {

// A worker on the chief's machine maps the values: replies name the memory, which is pinned, and so stays as it is,
// until the worker ends its contribution or loses its stream. A version for which the system gave no shared memory is
// streamed.
class MappedDelivery : public ValueDelivery {
 public:
  // `shard`, which compresses nothing, and `pins` must outlive this.
  MappedDelivery(const PinHolder& stream, const StepShard* shard, VersionPins* pins)
      : stream_(stream), shard_(*shard), pins_(pins), streamed_(stream, shard, pins) {}

  bool Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) override;
  bool HasEarlyValues() const override { return streams() && streamed_.HasEarlyValues(); }
  void Attach(const StepToken& token, StepReplyFrame* reply) override;
  void OnValuesSet(absl::Span<const int> segments) override { streamed_.OnValuesSet(segments); }
  // Kept, they would be a third version during the next step.
  void Release() override { values_.reset(); }
  // Memory that the worker may still map is used again; what it computes with it is refused, as its stream is closed.
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

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_MAPPED_DELIVERY_H_
