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

// Sends the variables' values to one worker. There is one version of the values for each step. Each segment of a
// version is sent once, in the order in which the segments became final. Segments of the next version are sent while
// that version is still being computed. The worker keeps the newest complete version while a later one arrives
// (ReceivedValues). The constant variables belong to no version: each is sent once, and again whenever it has been set.
// Not thread-safe.
class ValueSender {
 public:
  // `layout` must outlive this.
  explicit ValueSender(const ParameterLayout* layout);

  // Returns the version to send from now on at global step `step`. This is the version of `step` until it is complete,
  // and then, if `may_run_ahead`, the version of step + 1.
  int64_t Advance(int64_t step, bool may_run_ahead);

  // Returns true if Fill would have something to send after Advance(step, may_run_ahead), given that `num_final`
  // segments of the version after `step` are final.
  bool HasNext(int64_t step, bool may_run_ahead, size_t num_final) const;

  // Adds the next segments of the version that Advance returned to a reply, up to one frame. `final_segments` lists all
  // final segments of that version, in the order in which they became final.
  void Fill(absl::Span<const int> final_segments, std::shared_ptr<const PublishedValues> values, StepReplyFrame* reply);

  // Adds the constant variables of `values` that the worker lacks to a reply, up to one frame. Returns false if it
  // lacks none. The frame does not keep a version alive, because many steps may be committed while a slow link carries
  // the constant variables.
  bool FillConstants(const PublishedValues& values, StepReplyFrame* reply);

  // Makes Fill send `segments` again, because their values have changed in the version of `step`. `order` is the order
  // in which that version's segments became final. Affects only segments that have already been sent.
  void SendAgain(int64_t step, absl::Span<const int> order, absl::Span<const int> segments);

  // Returns true if the worker has all values of the version of `step`, except perhaps the constant variables.
  bool holds(int64_t step) const { return step == held_step_ || (step == step_ && complete()); }
  // Returns true if the worker has the constant variables of `values`.
  bool HoldsConstants(const PublishedValues& values) const;

 private:
  // The part of a constant variable that has been sent.
  struct Constant {
    int variable = 0;
    int64_t edition = -1;  // ConstantValues::editions
    int segments = 0;
  };

  bool complete() const { return cursor_ == num_changing_segments_ && again_.empty(); }
  // Adds the segment to the reply and its size to `elements`. Returns false if the reply is full.
  bool Add(int segment, const PublishedValues& values, int64_t* elements, StepReplyFrame* reply) const;
  int64_t Wanted(int64_t step, bool may_run_ahead) const { return may_run_ahead && holds(step) ? step + 1 : step; }

  const ParameterLayout& layout_;
  size_t num_changing_segments_ = 0;
  std::vector<Constant> constants_;
  // The newest values of the constant variables that have been sent completely.
  std::weak_ptr<const ConstantValues> held_constants_;
  // The version that is being sent, and the number of its segments that have been sent.
  int64_t step_ = -1;
  size_t cursor_ = 0;
  // Segments of that version that were sent before their values changed, and that must be sent again.
  std::vector<int> again_;
  // The newest version before step_ that was sent completely.
  int64_t held_step_ = -1;
};

// The way in which a worker gets the values of its token's step.
enum class ValuePath {
  // In process, through StepConnection::values(). Gradients are float32, and rounded if the run compresses them.
  kInProcess,
  // In replies, piece by piece.
  kStreamed,
  // Through memory that the replies name. It stays unchanged until the worker ends its contribution or loses its
  // stream. Requires a run that shares its values and compresses nothing.
  kShared,
};

// Delivers to one worker the values for the steps of its tokens, and the estimates of top-k compression. Each stream
// has its own object. For use by one thread at a time.
class ValueDelivery {
 public:
  virtual ~ValueDelivery() = default;

  // Adds to the reply, up to one frame, the values that the worker still lacks for `token` or, without a token, those
  // of the next values that are already final. Once the worker has everything that the token needs, returns the step of
  // the values to compute with.
  virtual absl::optional<int64_t> Fill(const absl::optional<StepToken>& token, StepReplyFrame* reply) = 0;
  // Returns true if Fill without a token would add something.
  virtual bool HasEarlyValues() const { return false; }
  // Called when the token is sent with this reply, after Fill has returned a step for it.
  virtual void Attach(const StepToken& token, StepReplyFrame* reply) = 0;
  // Called after values of the current step have been set in these segments.
  virtual void OnValuesSet(absl::Span<const int> segments) {}
  // Called when the worker's contribution to the token has ended.
  virtual void OnContributed(const StepToken& token) {}
  // Called when the worker no longer reads the values of its last token.
  virtual void Release() {}
  // Called when the stream has ended.
  virtual void OnClosed() {}

  // Returns true if values are sent in replies, which wait in the chief's memory until the worker reads them.
  virtual bool streams() const { return false; }
  // Return the values and estimates for the token that was attached last. In-process only.
  virtual std::shared_ptr<const PublishedValues> values() const { return nullptr; }
  virtual std::shared_ptr<const GradientEstimates> estimates() const { return nullptr; }
};

// `shard` and `pins` must outlive the result. If `finishes_versions`, a version that is being sent for a token is sent
// completely even if a newer one is committed meanwhile, so that even a slow link eventually delivers a whole version.
// Otherwise, a token is always for the current step, and the newest version replaces the one that is being sent.
std::unique_ptr<ValueDelivery> NewValueDelivery(ValuePath path, const PinHolder& stream, const StepShard* shard,
                                                VersionPins* pins, bool finishes_versions = false);

// Minimum number of old versions to keep: one for a worker that hangs for a long time, and one for a worker that is
// only slow.
constexpr int64_t kMinOldVersions = 2;
// Returns how many versions fit into `bytes`, but at least kMinOldVersions.
size_t MaxOldVersions(const StepShard& shard, int64_t bytes, int64_t slots);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_DELIVERY_VALUE_DELIVERY_H_
