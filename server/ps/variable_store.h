#ifndef LOCKSTEP_SERVER_PS_VARIABLE_STORE_H_
#define LOCKSTEP_SERVER_PS_VARIABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/base/threads/thread_pool.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/checkpoint/warm_start/warm_start_plan.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/buffer_pool.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/server/optimizer/optimizer_groups.h"
#include "lockstep/server/ps/memory_limit.h"
#include "lockstep/server/ps/update_norms.h"
#include "lockstep/server/ps/versions/estimate_versions.h"
#include "lockstep/server/ps/versions/optimizer_state_versions.h"
#include "lockstep/server/ps/versions/value_versions.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// The variables of a model with their optimizer state, and the number of updates applied to them. Both are versioned:
// an update writes a new buffer, and the old one, shared by threads that send or save it, stays unchanged. A snapshot
// of the last committed step copies nothing. Workers get rounded values if the run's compression requires it. Life
// cycle: Initialize or Restore; then for every step BeginUpdate, ApplySegment for every trainable segment,
// CommitUpdate. Thread-safety: ApplySegment and HoldSegment may run on several threads for different segments. All
// other methods are for one thread at a time, and not during these two, except next_published() and TakeSnapshot().
class VariableStore {
 public:
  // Does not allocate memory for variables yet; see CheckMemory. Returns InvalidArgument naming the wrong variable,
  // update op, optimizer field or optimizer group, or a variable whose name is a reserved key of checkpoints
  // (CheckCheckpointKeys). With `share_values`, other processes may map the memory of published(). `max_partial_sums`
  // limits the number of a step's partial sums that exist at the same time, including the one in the next values'
  // memory. 0 means DefaultPartialSums.
  static absl::StatusOr<std::unique_ptr<VariableStore>> Create(const v1::ModelSpec& model,
                                                               const config::v1::OptimizerConfig& optimizer,
                                                               const Compression& compression = {},
                                                               int64_t replicas_to_aggregate = 1,
                                                               bool share_values = false, int64_t max_partial_sums = 0);

  struct MemoryUse {
    bool saves = false;                // snapshots are taken for saving, one at a time
    bool reads = false;                // one more is taken for reading at the same time
    int64_t staged_contributions = 0;  // each takes gradient_bytes()
    bool brought_values = false;       // initial values of a worker exist next to the store's until they are assigned
  };
  // Returns the maximum memory of the store and of staged contributions in bytes. The store's memory is all versions of
  // variables, optimizer state and estimates, and all partial sums except the first, which is in the next values'
  // memory.
  uint64_t MemoryNeeded(const MemoryUse& use) const;
  // Returns the size of the gradients of all trainable variables, in bytes of float32.
  uint64_t gradient_bytes() const;
  // Memory that the chief needs for data that gRPC reads ahead (64 MiB), and for its code and all else (32 MiB).
  static constexpr uint64_t kProcessBytes = 96 << 20;
  // Returns ResourceExhausted, with the numbers, if MemoryNeeded and kProcessBytes exceed `limit`.
  absl::Status CheckMemory(const MemoryUse& use, const MemoryLimit& limit) const;

  using Estimates = GradientEstimates;
  using Snapshot = VariableSnapshot;

  // Sets the step to 0, initializes every variable from the seed and its name, and sets the initial optimizer state.
  void Initialize(uint64_t seed);
  // Restores everything from a checkpoint that WriteSnapshot wrote, and verifies the whole checkpoint. Reads directly
  // into the destination. `pool`, which may be null, shares the work. If `may_lack_state`, optimizer state that the
  // checkpoint lacks starts as after Initialize. Errors name the key: DataLoss for damage; otherwise NotFound or
  // InvalidArgument for another model's checkpoint. After an error, the store is unusable until Initialize or another
  // Restore.
  absl::Status Restore(const BundleReader& reader, ThreadPool* pool = nullptr, bool may_lack_state = false);
  // Loads the values of the plan, which was made for the model and this checkpoint. Call it after Initialize. Returns
  // DataLoss naming the key, or InvalidArgument naming a value that is not finite. After an error, the store is
  // unusable until Initialize.
  absl::Status WarmStart(const TensorReader& reader, const WarmStartPlan& plan);

  // Copies the variables' current values to the optimizer state that starts at these values (State::starts_at_value).
  // Call it before the first update.
  void StartStateAtValues();

  // Creates a new version of the state at step() in which these values are set, in order. Call it between updates. If a
  // type or shape is wrong or an element is not finite, returns InvalidArgument naming it and the key, and changes
  // nothing.
  absl::Status Assign(absl::Span<const AssignedValue> values);
  // Returns the error that Assign would return, without assigning anything.
  absl::Status CheckAssign(absl::Span<const AssignedValue> values) const;

  // Makes later updates use these settings and the existing state. Call it between updates. Returns InvalidArgument if
  // such an optimizer would have different state (CheckSameState).
  absl::Status SetOptimizer(const config::v1::OptimizerConfig& optimizer);

  // True if an update computes its norms, which does not change a single bit of the values.
  enum class Norms { kNone, kGathered };
  // Begins the update from step() to step() + 1, with the learning rates of step().
  void BeginUpdate(Norms norms = Norms::kNone);
  // Returns the memory for a segment's new values in the update in progress. May be used as scratch memory until
  // ApplySegment.
  float* NextValues(int segment);
  // Applies the optimizer to one trainable segment. Must be called once in each update. `sum` is divided by `divisor`,
  // and may be in NextValues.
  void ApplySegment(int segment, const float* sum, float divisor);
  // True if the optimizer clips the mean gradient by its global norm (clip.mean_by_global_norm). The norm is known only
  // after the last sum, so every trainable segment is held, and then all are applied together.
  bool holds_segments() const { return clips_means_; }
  // Called instead of ApplySegment if holds_segments(). Keeps a copy of `sum` in NextValues, where it may already be.
  void HoldSegment(int segment, const float* sum, float divisor);
  // Applies the optimizer to all trainable segments, after all of them are held with this divisor. For variables that
  // are clipped together, the norm of the mean gradient is computed in double, segment by segment in order. If it is at
  // most the limit, every bit equals ApplySegment's result. Otherwise, their divisor is multiplied by norm / limit.
  void ApplyHeld(float divisor);
  // With top-k compression, computes a segment of the next estimate of a slot's gradient by adding `differences` to the
  // current one. Returns that segment, which is the gradient to add. Call it once for each trainable segment and slot
  // in each update, on any thread.
  const float* AddToEstimate(int segment, int64_t slot, absl::string_view differences);
  // Folds `updates` (ValueVersions::FoldUpdates) into the non-trainable variables and makes the new values current.
  // Returns the norms of the update if they were requested.
  absl::optional<UpdateNorms> CommitUpdate(absl::Span<const std::vector<std::vector<float>>> updates);

  // Ends the update like CommitUpdate, but drops all new values, so that only the step advances. No thread may hold
  // next_published().
  void SkipUpdate();
  // Drops the update in progress; the step does not advance.
  void DropUpdate();

  const ParameterLayout& layout() const { return *layout_; }
  // The learning rate of the update that began last, for variables that are in no group.
  float learning_rate() const { return optimizers_->learning_rate(); }
  // Name of a registered schedule whose rate in the update that began last is not finite, if any.
  absl::optional<std::string> FindNonFiniteRate() const { return optimizers_->FindNonFiniteRate(); }
  int64_t step() const { return step_; }
  // The limit on partial sums that SumAdmission applies when it admits contributions to a step's sums. The store does
  // not enforce it.
  int64_t max_partial_sums() const { return max_partial_sums_; }
  const Compression& compression() const { return compression_; }
  // The flat array of the current version, without the constant variables.
  std::shared_ptr<const AlignedBuffer> values() const { return values_.current(); }
  // The current version as sent to workers.
  std::shared_ptr<const PublishedValues> published() const { return values_.published(); }
  // With top-k compression, the estimates of the slots' gradients at step(), which are zeros at step 0. Otherwise
  // empty.
  std::shared_ptr<const Estimates> estimates() const { return estimates_.current(); }
  // The version that the update in progress writes. Applied segments are final. Null if no update is in progress.
  std::shared_ptr<const PublishedValues> next_published() const { return values_.next_published(); }

  // Allocates the memory that updates need while snapshots exist, and returns it. Call it after Initialize or Restore.
  // Unless this memory is pre-faulted (Prefault), the first update after the first snapshot waits for the kernel to
  // clear it.
  BufferPool::Buffers PrepareSnapshots();
  // Returns the state at step(). May be called during an update.
  Snapshot TakeSnapshot() const;

  // Buffers of kSegmentElements floats for the partial sums of a step. Shared by all steps and threads, because a
  // thread's own heap arena would keep freed buffers.
  BufferPool* segment_pool() { return &segment_pool_; }

 private:
  VariableStore(ParameterLayout layout, std::unique_ptr<OptimizerGroups> optimizers, const Compression& compression,
                int64_t replicas_to_aggregate, bool share_values, int64_t max_partial_sums);

  // A destination of Assign: a variable or the state of an update op, and the number of its optimizer state. The latter
  // is absent if the value itself is assigned.
  struct Place {
    const ParameterLayout::Variable* variable = nullptr;
    absl::optional<size_t> state;
  };
  absl::StatusOr<Place> FindAssigned(const AssignedValue& value) const;

  // Adds the destinations of all tensors except scalars to `places`. Their memory is not initialized. If `lacking` is
  // null, the reader must have all state.
  absl::Status AddPlaces(const BundleReader& reader, ThreadPool* pool, std::vector<BundleReader::Place>* places,
                         OptimizerStateVersions::Lacking* lacking);
  // Like StartStateAtValues(), but only for these states.
  void StartStateAtValues(const OptimizerStateVersions::Lacking& states);
  absl::StatusOr<int64_t> RestoreStep(const BundleReader& reader) const;
  absl::StatusOr<std::vector<OptimizerScalar>> RestoreScalars(const BundleReader& reader) const;

  const std::shared_ptr<const ParameterLayout> layout_;
  std::unique_ptr<OptimizerGroups> optimizers_;
  bool clips_means_;
  const Compression compression_;
  const int64_t max_partial_sums_;
  BufferPool segment_pool_;

  int64_t step_ = 0;
  ValueVersions values_;
  OptimizerStateVersions optimizer_state_;
  EstimateVersions estimates_;
  UpdateNormSums norms_;
  bool wants_norms_ = false;  // of the update in progress
};

// Writes all entries of the snapshot (snapshot_entries.h), its session state and its stream positions.
absl::Status WriteSnapshot(const VariableStore::Snapshot& snapshot, BundleWriter* writer);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VARIABLE_STORE_H_
