#ifndef LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_
#define LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/ps/versions/value_versions.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/server/sync/delivery/version_pins.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/workers/worker_state.h"

namespace lockstep {

// What one worker was sent of the variables' values. They go version by version, one version for each step: of a
// version each segment once, in the order in which the segments became final; those of the next version while it is
// still being made. A worker keeps the newest complete version while a later one comes in (ReceivedValues). Not
// thread-safe.
class ValueSender {
 public:
  // `layout` must outlive this.
  explicit ValueSender(const ParameterLayout* layout) : layout_(*layout) {}

  // The version to send from now on, when the global step is `step`: that of `step` until it is complete, then, if
  // `may_run_ahead`, that of step + 1.
  int64_t Advance(int64_t step, bool may_run_ahead);

  // Whether Fill would then find something to send, when `num_final` segments of the version after `step` are final.
  bool HasNext(int64_t step, bool may_run_ahead, size_t num_final) const;

  // Puts the next segments of that version into a reply, as many as one frame takes. `final_segments` are all that are
  // final, in the order in which they became so.
  void Fill(absl::Span<const int> final_segments, std::shared_ptr<const PublishedValues> values, StepReplyFrame* reply);

  // The version of `step`, whose segments became final in this order, has other values in `segments`: Fill sends those
  // again that were sent.
  void SendAgain(int64_t step, absl::Span<const int> order, absl::Span<const int> segments);

  // The worker has all values of the version of `step`.
  bool holds(int64_t step) const { return step == held_step_ || (step == step_ && complete()); }

 private:
  bool complete() const { return cursor_ == layout_.segments().size() && again_.empty(); }
  // Adds the segment to the reply, which has `elements`, unless it is full.
  bool Add(int segment, const PublishedValues& values, int64_t* elements, StepReplyFrame* reply) const;
  int64_t Wanted(int64_t step, bool may_run_ahead) const { return may_run_ahead && holds(step) ? step + 1 : step; }

  const ParameterLayout& layout_;
  // The version that is being sent, and how many of its segments were.
  int64_t step_ = -1;
  size_t cursor_ = 0;
  // Segments of that version that were sent and have other values since.
  std::vector<int> again_;
  // The newest version before it that was sent completely.
  int64_t held_step_ = -1;
};

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
  // values, as far as they are final. Returns the step of the values that the worker is to compute with once it has
  // everything that the token needs.
  virtual absl::optional<int64_t> Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) = 0;
  // Whether Fill, without a token, would add something.
  virtual bool HasEarlyValues() const { return false; }
  // The token goes out with this reply, which follows that Fill.
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

// `shard` and `pins` must outlive the result. `finishes_versions`: a version that is being sent for a token is sent
// completely although a newer one is committed meanwhile, so that a slow link gets a whole one at last. Otherwise a
// token is for the present step, and the newest version takes its place.
std::unique_ptr<ValueDelivery> NewValueDelivery(ValuePath path, const PinHolder& stream, const StepShard* shard,
                                                VersionPins* pins, bool finishes_versions = false);

// One worker may hang for a long time while another is only slow.
constexpr int64_t kMinOldVersions = 2;
// Returns how many versions fit into `bytes`, at least kMinOldVersions.
size_t MaxOldVersions(const StepShard& shard, int64_t bytes, int64_t slots);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_
