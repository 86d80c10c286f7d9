#ifndef LOCKSTEP_SERVER_SYNC_SHARD_STEP_SHARD_H_
#define LOCKSTEP_SERVER_SYNC_SHARD_STEP_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/server/ps/non_finite_value.h"
#include "lockstep/server/ps/slot_metrics.h"
#include "lockstep/server/ps/update_norms.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/ps/versions/value_versions.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The sums of the contributions to one step. Accepts contributions that a ContributionChecker has passed, from any
// thread.
class StepSums {
 public:
  virtual ~StepSums() = default;

  // Adds the losses and update-op values of the slots of a block. If a slot is reported more than once, its first
  // report is kept.
  virtual void AddReports(absl::Span<const v1::SlotReport> reports) = 0;
  // Adds a piece of the sum over `block`, whose slots must all have reported. Returns true if any of it was new.
  virtual bool AddPiece(const SlotBlock& block, const StepPiece& piece) = 0;
  // Returns true if the step can be committed: everything is summed and the optimizer has run, or the update will be
  // skipped.
  virtual bool complete() const = 0;
  // Returns a value that was contributed to `block` and that prevents the step from being committed or its update from
  // being applied.
  virtual absl::optional<NonFiniteValue> FindNonFinite(const SlotBlock& block) const = 0;
  // Returns the number of segments whose next values are final.
  virtual size_t num_finished_segments() const = 0;
};

// The variables of a run and their sums, as the step sees them. Several methods return memory of this process (values,
// versions, snapshots). Life cycle: Begin, then Commit, GiveUp or Abort. Except after Abort, Begin may follow again.
// For use by one thread at a time, except for StepSums.
class StepShard {
 public:
  struct Options {
    // The norms of updates are gathered at every multiple of this many steps. 0 means never.
    int64_t norms_every_steps = 0;
    // If true, an update that is not finite is skipped when it is committed. Whether it is finite is known only then,
    // so no segment is final earlier.
    bool skips_non_finite = false;
    // See ContributionSet::Options.
    bool applies_sum = false;
  };

  // `store` must be initialized and must outlive this object. `slots` is replicas_to_aggregate.
  StepShard(VariableStore* store, int64_t slots, const Options& options);
  StepShard(VariableStore* store, int64_t slots) : StepShard(store, slots, Options()) {}

  const ParameterLayout& layout() const { return store_->layout(); }
  // Returns the compression of gradients and values on the wire.
  const Compression& compression() const { return store_->compression(); }
  // Returns the number of updates applied so far.
  int64_t step() const { return store_->step(); }
  // Returns the maximum number of partial sums that a step may keep in memory.
  int64_t max_partial_sums() const { return store_->max_partial_sums(); }

  // Begins the update from `step`, which must be step(), to step + 1. Anything that is still being added to an update
  // after it has ended no longer counts.
  std::shared_ptr<StepSums> Begin(int64_t step);
  // Returns the learning rate of the update that began last, for variables that are in no group.
  float learning_rate() const { return store_->learning_rate(); }
  // The result of Commit, which applies the complete sums and advances to step() + 1.
  struct Committed {
    // The value that is not finite, if the update was skipped because of it; the step then counts, but nothing else has
    // changed. nullopt if the update was applied.
    absl::optional<NonFiniteValue> skipped;
    double mean_loss = 0;  // over the slots
    bool stop = false;     // a slot asked for the run's end
    // The summary of each slot that has one, in slot order, serialized.
    std::vector<std::string> summaries;
    // The metrics of each slot that has any, in slot order.
    std::vector<SlotMetrics> metrics;
    // Set at the steps for which the shard gathers norms.
    absl::optional<UpdateNorms> norms;
  };
  Committed Commit();
  // Gives up the update, after which it may begin again. Must be called only when no thread adds to its sums any
  // longer.
  void GiveUp();
  // Gives up the update while other threads may still add to its sums. No other update follows.
  void Abort() { sums_.reset(); }
  // Returns the error that Assign would return, without setting anything.
  absl::Status CheckAssign(absl::Span<const AssignedValue> values) const { return store_->CheckAssign(values); }
  // Creates a new version of the values at step(), in which these values are set. Called between updates. Returns the
  // errors of VariableStore::Assign.
  absl::Status Assign(absl::Span<const AssignedValue> values) { return store_->Assign(values); }
  // Applies these settings to the following updates. Called between updates. Returns the errors of
  // VariableStore::SetOptimizer.
  absl::Status SetOptimizer(const config::v1::OptimizerConfig& optimizer) { return store_->SetOptimizer(optimizer); }
  // Returns the state at step(). May be called while an update is in progress.
  VariableSnapshot TakeSnapshot() const { return store_->TakeSnapshot(); }

  // Return the values at step() as workers get them, and the segments of all variables except the constant ones in the
  // order in which they became final.
  std::shared_ptr<const PublishedValues> values() const { return store_->published(); }
  const std::vector<int>& segment_order() const { return segment_order_; }
  // Return the memory where other processes may map the values of all variables except the constant ones, and of the
  // constant ones. Both are null if other processes cannot map them. The second is also null if there are no constant
  // variables.
  const v1::SharedMemoryHandle* values_memory() const;
  const v1::SharedMemoryHandle* constants_memory() const;
  // With top-k compression, returns the estimates of the slots' gradients at step(), which are zeros at step 0.
  // Otherwise empty.
  std::shared_ptr<const GradientEstimates> estimates() const { return store_->estimates(); }
  // Return the values that the update in progress writes, which are null if there is none, and the segments whose new
  // values are final.
  std::shared_ptr<const PublishedValues> next_values() const;
  std::vector<int> finished_segments() const;
  size_t num_finished_segments() const;

 private:
  class Sums;
  struct FreeList;

  // Returns empty sums. They are reused after their last owner has released them.
  std::shared_ptr<Sums> NewSums();

  VariableStore* const store_;
  const int64_t slots_;
  const Options options_;
  const std::shared_ptr<FreeList> free_list_;
  std::vector<int> segment_order_;
  std::vector<int> updated_segments_;  // of the variables that update ops name
  // The sums of the update in progress; null if there is none.
  std::shared_ptr<Sums> sums_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_SHARD_STEP_SHARD_H_
