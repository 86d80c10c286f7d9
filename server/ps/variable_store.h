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
#include "lockstep/server/optimizer/optimizer.h"
#include "lockstep/server/ps/memory_limit.h"
#include "lockstep/server/ps/update_norms.h"
#include "lockstep/server/ps/versions/estimate_versions.h"
#include "lockstep/server/ps/versions/optimizer_state_versions.h"
#include "lockstep/server/ps/versions/value_versions.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// The variables of a model with their optimizer state, and the number of updates that were applied to
// them. Values are versions: an update writes a new buffer while the old one, shared by all who send or
// save it, stays unchanged. Workers get them rounded when the run's compression says so. Optimizer state is versioned,
// too: the last committed step is whole at any instant, and a snapshot of it copies nothing. Life: Initialize or
// Restore, then for every step BeginUpdate, ApplySegment for every trainable segment, CommitUpdate. Thread-safety:
// ApplySegment may run on several threads for different segments; everything else is for one thread at a time, and not
// during ApplySegment, except for next_published() and TakeSnapshot().
class VariableStore {
 public:
  // Takes no memory for variables yet: see CheckMemory.
  // Errors: InvalidArgument names the variable, update op or optimizer field that is wrong, also a variable whose name
  // a checkpoint needs for something else (CheckCheckpointKeys). With `share_values` published() lies in memory that
  // other processes may map. `max_partial_sums`: those of a step that are held at once, the one that lies in the next
  // values included; 0: DefaultPartialSums.
  static absl::StatusOr<std::unique_ptr<VariableStore>> Create(const v1::ModelSpec& model,
                                                               const config::v1::OptimizerConfig& optimizer,
                                                               const Compression& compression = {},
                                                               int64_t replicas_to_aggregate = 1,
                                                               bool share_values = false, int64_t max_partial_sums = 0);

  // What the store will hold at most: all versions of variables, optimizer state and estimates, and max_partial_sums()
  // but the first, which lies in the next values. `saves`: snapshots are taken to be saved, one at a time; `reads`: one
  // more is taken to be read meanwhile.
  uint64_t MemoryNeeded(bool saves, bool reads = false) const;
  // ResourceExhausted with both numbers when that is more than `limit`.
  absl::Status CheckMemory(bool saves, const MemoryLimit& limit, bool reads = false) const;

  using Estimates = GradientEstimates;
  using Snapshot = VariableSnapshot;

  // Step 0, every variable from (seed, name), optimizer state at its start.
  void Initialize(uint64_t seed);
  // Everything from a checkpoint that a snapshot wrote, read where it is to lie, and all of the checkpoint verified.
  // `pool`, which may be null, shares the work. DataLoss for damage; then NotFound or InvalidArgument for what is not
  // the model's; they name the key. The store is unusable after them until Initialize or another Restore.
  absl::Status Restore(const BundleReader& reader, ThreadPool* pool = nullptr);
  // After Initialize: takes what the plan, which was made for the model and this checkpoint, loads. DataLoss names the
  // key, InvalidArgument a value that is not finite; the store is then unusable until Initialize.
  absl::Status WarmStart(const TensorReader& reader, const WarmStartPlan& plan);

  // Before the first update: optimizer state that begins with the variables' values begins with the present ones.
  void StartStateAtValues();

  // Between updates: a new version of step() with these values, in order. Errors: InvalidArgument names the key, and
  // what is wrong with its type, its shape or an element, which must be finite; nothing has changed then.
  absl::Status Assign(absl::Span<const AssignedValue> values);
  // The errors of Assign.
  absl::Status CheckAssign(absl::Span<const AssignedValue> values) const;

  // Between updates: the updates that follow are made with these settings, and the state that there is. InvalidArgument
  // when it is not the state of such an optimizer (CheckSameState).
  absl::Status SetOptimizer(const config::v1::OptimizerConfig& optimizer);

  // The update from step() to step() + 1 starts. Its norms are gathered when they are wanted, which changes no bit.
  void BeginUpdate(float learning_rate, bool wants_norms = false);
  // Where the update in progress writes the new values of a segment: scratch memory until ApplySegment.
  float* NextValues(int segment);
  // Applies the optimizer to one trainable segment, once in each update. `sum`, which may lie in NextValues, is divided
  // by `divisor`.
  void ApplySegment(int segment, const float* sum, float divisor);
  // With top-k compression: a segment of the next estimate of a slot's gradient, which is the present one plus
  // `differences`; returned, it is the gradient to be summed. Once for each trainable segment and slot in each update,
  // from any thread.
  const float* AddToEstimate(int segment, int64_t slot, absl::string_view differences);
  // Folds `updates` (one value for each update op, for each slot in slot order) into the non-trainable variables
  // and makes the new values current. Returns the update's norms if they were wanted.
  absl::optional<UpdateNorms> CommitUpdate(absl::Span<const std::vector<std::vector<float>>> updates);

  // In place of CommitUpdate: the step counts, and nothing else changes. What the update in progress has written is
  // dropped; nobody may have next_published().
  void SkipUpdate();
  // In place of CommitUpdate: what the update in progress has written is dropped, and the step does not count.
  void DropUpdate();

  const ParameterLayout& layout() const { return *layout_; }
  // Of the configuration that the updates are made with.
  const config::v1::LearningRate& learning_rate() const { return learning_rate_; }
  int64_t step() const { return step_; }
  // The bound for whoever admits contributions to a step's sums (SumAdmission); nothing here enforces it.
  int64_t max_partial_sums() const { return max_partial_sums_; }
  const Compression& compression() const { return compression_; }
  // The flat array of the current version.
  std::shared_ptr<const AlignedBuffer> values() const { return values_.current(); }
  // The current version as workers get it.
  std::shared_ptr<const PublishedValues> published() const { return values_.published(); }
  // With top-k compression: the estimates of the slots' gradients at step(), zeros at step 0. Else empty.
  std::shared_ptr<const Estimates> estimates() const { return estimates_.current(); }
  // The version that the update in progress writes: segments that were applied are final. Null when there is none.
  std::shared_ptr<const PublishedValues> next_published() const { return values_.next_published(); }

  // Gets the memory that updates need while snapshots are held, after Initialize or Restore, and returns it. Until it
  // is provided (Prefault), the first update after the first snapshot would wait for the kernel to clear it.
  BufferPool::Buffers PrepareSnapshots();
  // The state at step(), also while an update is in progress.
  Snapshot TakeSnapshot() const;

  // Buffers of kSegmentElements floats, for the partial sums of a step. They are shared by all steps and threads: a
  // thread's own part of the heap would keep those that it freed.
  BufferPool* segment_pool() { return &segment_pool_; }

 private:
  VariableStore(ParameterLayout layout, std::unique_ptr<Optimizer> optimizer, const Compression& compression,
                int64_t replicas_to_aggregate, bool share_values, int64_t max_partial_sums);

  // What Assign may do: the variable, and the name of its optimizer state, empty for its value.
  struct Place {
    const ParameterLayout::Variable* variable = nullptr;
    std::string state;
  };
  absl::StatusOr<Place> FindAssigned(const AssignedValue& value) const;

  // Adds to `places` where everything is to be read, into memory that is not initialized, but for what is a number.
  absl::Status AddPlaces(const BundleReader& reader, ThreadPool* pool, std::vector<BundleReader::Place>* places);
  absl::StatusOr<int64_t> RestoreStep(const BundleReader& reader) const;
  absl::StatusOr<std::vector<OptimizerScalar>> RestoreScalars(const BundleReader& reader) const;

  const std::shared_ptr<const ParameterLayout> layout_;
  std::unique_ptr<Optimizer> optimizer_;
  config::v1::LearningRate learning_rate_;
  const Compression compression_;
  const int64_t max_partial_sums_;
  BufferPool segment_pool_;

  int64_t step_ = 0;
  ValueVersions values_;
  OptimizerStateVersions optimizer_state_;
  EstimateVersions estimates_;
  UpdateNormSums norms_;
};

// Writes all entries of the snapshot (snapshot_entries.h).
absl::Status WriteSnapshot(const VariableStore::Snapshot& snapshot, BundleWriter* writer);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VARIABLE_STORE_H_
