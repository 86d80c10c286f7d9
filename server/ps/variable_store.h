#ifndef LOCKSTEP_SERVER_PS_VARIABLE_STORE_H_
#define LOCKSTEP_SERVER_PS_VARIABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/bundle_reader.h"
#include "common/checkpoint/bundle_writer.h"
#include "common/config/compression.h"
#include "common/tensor/aligned_buffer.h"
#include "common/tensor/parameter_layout.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"
#include "server/optimizer/optimizer.h"
#include "server/ps/buffer_pool.h"
#include "server/ps/memory_limit.h"
#include "server/ps/published_values.h"

namespace lockstep {

// The variables of a model with their optimizer state, and the number of updates that were applied to
// them. Values are versions: an update writes a new buffer while the old one, shared by all who send or
// save it, stays unchanged. Workers get them rounded when the run's compression says so. Optimizer slots are versions,
// too: the last committed step is whole at any instant, and a snapshot of it copies nothing. Life: Initialize or
// Restore, then for every step BeginUpdate, ApplySegment for every trainable segment, CommitUpdate. Thread-safety:
// ApplySegment may run on several threads for different segments; everything else is for one thread at a time, and not
// beside ApplySegment, but for next_published() and TakeSnapshot().
class VariableStore {
 public:
  // Takes no memory for variables yet: see CheckMemory.
  // Errors: InvalidArgument names the variable, update op or optimizer field that is wrong, also a variable whose name
  // a checkpoint needs for something else (CheckCheckpointKeys). With `share_values` published() lies in memory that
  // other processes may map.
  static absl::StatusOr<std::unique_ptr<VariableStore>> Create(const ModelSpec& model, const OptimizerConfig& optimizer,
                                                               const Compression& compression = {},
                                                               int64_t replicas_to_aggregate = 1,
                                                               bool share_values = false);

  // What the store will hold at most, when contributions come in order: all versions of variables, optimizer slots and
  // estimates, and the partial sums of a step. `saves`: snapshots are taken, one at a time.
  uint64_t MemoryNeeded(bool saves) const;
  // ResourceExhausted with both numbers when that is more than `limit`.
  absl::Status CheckMemory(bool saves, const MemoryLimit& limit) const;

  // One flat array for each slot of a step.
  using Estimates = std::vector<std::shared_ptr<const AlignedBuffer>>;

  // A consistent state, to be written in the background. Keeps its memory alive by itself.
  struct Snapshot {
    int64_t step = 0;
    std::shared_ptr<const ParameterLayout> layout;
    std::vector<std::string> slot_names;
    std::vector<OptimizerScalar> scalars;
    std::shared_ptr<const AlignedBuffer> values;
    std::vector<std::shared_ptr<const AlignedBuffer>> slots;
    std::shared_ptr<const Estimates> estimates;
  };

  // Step 0, every variable from (seed, name), slots at their start.
  void Initialize(uint64_t seed);
  // Everything from a checkpoint that a snapshot wrote. NotFound, InvalidArgument or DataLoss name the key; the store
  // is then unusable until Initialize or another Restore.
  absl::Status Restore(const BundleReader& reader);
  // After Initialize: takes the variables that the checkpoint has (it may be TensorFlow's), returns the names that it
  // lacks. InvalidArgument when a shape or dtype differs.
  absl::StatusOr<std::vector<std::string>> WarmStart(const BundleReader& reader);

  // The update from step() to step() + 1 starts.
  void BeginUpdate(float learning_rate);
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
  // and makes the new values current.
  void CommitUpdate(absl::Span<const std::vector<std::vector<float>>> updates);

  const ParameterLayout& layout() const { return *layout_; }
  std::shared_ptr<const ParameterLayout> shared_layout() const { return layout_; }
  int64_t step() const { return step_; }
  const Compression& compression() const { return compression_; }
  // The flat array of the current version.
  std::shared_ptr<const AlignedBuffer> values() const { return values_; }
  // The current version as workers get it.
  std::shared_ptr<const PublishedValues> published() const { return published_; }
  // With top-k compression: the estimates of the slots' gradients at step(), zeros at step 0. Else empty.
  std::shared_ptr<const Estimates> estimates() const { return estimates_; }
  // The version that the update in progress writes: segments that were applied are final. Null when there is none.
  std::shared_ptr<const PublishedValues> next_published() const { return next_published_; }

  // Gets the memory that updates need while snapshots are held, after Initialize or Restore. Without it the first
  // update after the first snapshot would wait for the kernel to clear it.
  void PrepareSnapshots();
  // The state at step(), also while an update is in progress.
  Snapshot TakeSnapshot() const;

  // Buffers of kSegmentElements floats, for the partial sums of a step. They are shared by all steps and threads: a
  // thread's own part of the heap would keep those that it freed.
  BufferPool* segment_pool() { return &segment_pool_; }

 private:
  VariableStore(ParameterLayout layout, std::unique_ptr<Optimizer> optimizer, const Compression& compression,
                int64_t replicas_to_aggregate, bool share_values);

  // Publishes `flat` with memory for what is encoded, not initialized.
  std::shared_ptr<const PublishedValues> Publish(std::shared_ptr<const AlignedBuffer> flat,
                                                 std::shared_ptr<AlignedBuffer>* encoded);
  // Step 0, memory for all state; slots and estimates at their start, values zeros.
  void Clear();
  // Publishes values_ whole.
  void PublishAll();
  absl::Status RestoreSlots(const BundleReader& reader, std::vector<std::shared_ptr<AlignedBuffer>>* slots) const;
  absl::Status ReadVariable(const BundleReader& reader, const std::string& key,
                            const ParameterLayout::Variable& variable, AlignedBuffer* flat) const;
  absl::StatusOr<std::vector<OptimizerScalar>> RestoreScalars(const BundleReader& reader) const;
  absl::Status RestoreEstimates(const BundleReader& reader);

  const std::shared_ptr<const ParameterLayout> layout_;
  const std::unique_ptr<Optimizer> optimizer_;
  const Compression compression_;
  const int64_t replicas_to_aggregate_;
  // 0 without top-k compression.
  const int64_t num_estimates_;
  BufferPool pool_;
  BufferPool slot_pool_;
  BufferPool encoded_pool_;
  BufferPool estimate_pool_;
  BufferPool segment_pool_;

  int64_t step_ = 0;
  std::shared_ptr<AlignedBuffer> values_;
  std::vector<std::shared_ptr<AlignedBuffer>> slots_;
  std::shared_ptr<const PublishedValues> published_;
  // The update in progress.
  std::shared_ptr<AlignedBuffer> next_values_;
  std::shared_ptr<AlignedBuffer> next_encoded_;  // null for float32
  std::shared_ptr<const PublishedValues> next_published_;
  std::vector<std::shared_ptr<AlignedBuffer>> next_slots_;
  // Estimates are versions as values are.
  std::shared_ptr<const Estimates> estimates_;
  std::vector<std::shared_ptr<AlignedBuffer>> next_estimates_;
};

// Writes variables, slots ("<variable>/<slot>"), estimates ("<variable>/GradientEstimate_<slot>"), the optimizer's
// scalars and global_step (int64).
absl::Status WriteSnapshot(const VariableStore::Snapshot& snapshot, BundleWriter* writer);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VARIABLE_STORE_H_
