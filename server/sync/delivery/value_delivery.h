#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_

#include <memory>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/server/ps/versions/value_versions.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/server/sync/workers/worker_state.h"

namespace lockstep {

// How one worker gets the values of its tokens' steps, and the estimates of top-k compression. One object for each
// stream. For one thread at a time.
class ValueDelivery {
 public:
  virtual ~ValueDelivery() = default;

  // Adds what the worker lacks to the reply, as much as one frame takes: for `token`, or, without one, of the next
  // values, as far as they are final. True when it has everything that the token needs.
  virtual bool Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) = 0;
  // Whether Fill, without a token, would add something.
  virtual bool HasEarlyValues() const { return false; }
  // The token goes out with this reply; its step is the present one.
  virtual void Attach(const StepToken& token, StepReplyFrame* reply) = 0;
  // The present step has other values in these segments.
  virtual void OnValuesSet(absl::Span<const int> segments) {}
  // The worker's contribution to the token has ended.
  virtual void OnContributed(const StepToken& token) {}
  // The worker no longer reads the values of its last token.
  virtual void Release() {}
  // The stream has ended.
  virtual void OnClosed() {}

  // Values are in replies, which wait in the chief's memory until the worker reads them.
  virtual bool streams() const { return false; }
  // In process: those of the token that was attached last.
  virtual std::shared_ptr<const PublishedValues> values() const { return nullptr; }
  virtual std::shared_ptr<const GradientEstimates> estimates() const { return nullptr; }
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_
