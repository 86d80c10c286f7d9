#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/server/ps/versions/value_versions.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/server/sync/delivery/version_pins.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/workers/worker_state.h"

namespace lockstep {

// How a worker gets the values of its token's step.
enum class ValuePath {
  // StepConnection::values(): in process. Gradients are float32 (rounded, if the run compresses them).
  kInProcess,
  // In replies, piece by piece.
  kStreamed,
  // Replies name the memory that they lie in, which stays as it is until the worker ends its contribution, or loses its
  // stream. For a run that shares its values and compresses nothing.
  kShared,
};

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

// `shard` and `pins` must outlive the result.
std::unique_ptr<ValueDelivery> NewValueDelivery(ValuePath path, const PinHolder& stream, const StepShard* shard,
                                                VersionPins* pins);

// One worker may hang for a long time while another is only slow.
constexpr int64_t kMinOldVersions = 2;
// Returns how many versions fit into `bytes`, at least kMinOldVersions.
size_t MaxOldVersions(const StepShard& shard, int64_t bytes, int64_t slots);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_
