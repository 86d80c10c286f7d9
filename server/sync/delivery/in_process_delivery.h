#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_IN_PROCESS_DELIVERY_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_IN_PROCESS_DELIVERY_H_

#include <memory>

#include "lockstep/server/sync/delivery/value_delivery.h"
#include "lockstep/server/sync/shard/step_shard.h"

namespace lockstep {

// A worker in the chief's process reads the values where they are.
class InProcessDelivery : public ValueDelivery {
 public:
  // `shard` must outlive this.
  explicit InProcessDelivery(const StepShard* shard) : shard_(*shard) {}

  bool Fill(const absl::optional<StepToken>&, StepReplyFrame*) override { return true; }
  void Attach(const StepToken&, StepReplyFrame*) override {
    values_ = shard_.values();
    estimates_ = shard_.estimates();
  }
  // Kept, they would be a third version during the next step.
  void Release() override { values_.reset(); }
  std::shared_ptr<const PublishedValues> values() const override { return values_; }
  std::shared_ptr<const GradientEstimates> estimates() const override { return estimates_; }

 private:
  const StepShard& shard_;
  std::shared_ptr<const PublishedValues> values_;
  std::shared_ptr<const GradientEstimates> estimates_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_IN_PROCESS_DELIVERY_H_
