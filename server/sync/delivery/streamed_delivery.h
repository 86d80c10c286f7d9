#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_STREAMED_DELIVERY_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_STREAMED_DELIVERY_H_

#include "lockstep/server/sync/delivery/estimate_sender.h"
#include "lockstep/server/sync/delivery/value_delivery.h"
#include "lockstep/server/sync/delivery/value_sender.h"
#include "lockstep/server/sync/delivery/version_pins.h"
#include "lockstep/server/sync/shard/step_shard.h"

namespace lockstep {

// A worker is sent the values, and estimates, piece by piece: the next ones while they are still being made, when it
// has done its part of the step. What waits to be read is pinned.
class StreamedDelivery : public ValueDelivery {
 public:
  // `shard` and `pins` must outlive this.
  StreamedDelivery(const PinHolder& stream, const StepShard* shard, VersionPins* pins);

  bool Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) override;
  bool HasEarlyValues() const override;
  void Attach(const StepToken&, StepReplyFrame*) override {}  // the worker has them in its own memory
  void OnValuesSet(absl::Span<const int> segments) override {
    values_.SendAgain(shard_.step(), shard_.segment_order(), segments);
  }
  void OnContributed(const StepToken& token) override { estimates_.Advance(token.step, token.block); }
  bool streams() const override { return true; }

 private:
  bool FillEstimates(const StepToken& token, StepReplyFrame* reply);

  const PinHolder stream_;
  const StepShard& shard_;
  VersionPins* const pins_;
  ValueSender values_;
  EstimateSender estimates_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_STREAMED_DELIVERY_H_
