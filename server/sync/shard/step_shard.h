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
#include "lockstep/server/ps/slot_metrics.h"
#include "lockstep/server/ps/update_norms.h"
#include "lockstep/server/ps/versions/value_versions.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The sums of what is contributed to one step. Takes what a ContributionChecker has passed, from any thread.
class StepSums {
 public:
  // Something NaN or infinite.
  struct NonFinite {
    std::string what;              // "loss", "update of mean", "gradient of w"
    absl::optional<int64_t> slot;  // none for a gradient
    bool contributed = true;       // false: no contribution brought it
  };

  virtual ~StepSums() = default;

  // Losses and update-op values of the slots of a block. A slot keeps its first report.
  virtual void AddReports(absl::Span<const v1::SlotReport> reports) = 0;
  // Adds a piece of the sum over `block`, whose slots have all reported. Returns whether any of it was new.
  virtual bool AddPiece(const SlotBlock& block, const StepPiece& piece) = 0;
  // Everything is summed and the optimizer has run, or the update is to be skipped: the step can be committed.
  virtual bool complete() const = 0;
  // Something that was contributed to `block` and keeps the step from being committed, or its update from being
  // applied.
  virtual absl::optional<NonFinite> FindNonFinite(const SlotBlock& block) const = 0;
  // Segments whose next values are final.
  virtual size_t num_finished_segments() const = 0;
};

// Where the variables of a run are, as the step sees them. LocalShard keeps them in this process. One that has them in
// several others would send each Begin, piece and Commit to those that it concerns; its Commit would first have all of
// them promise the step (prepare), so that either all commit it or none, and return before they have; Abort would
// restore each to its last committed step. Nobody but placement, fan-out and `main` needs to know.
// Life: Begin, then Commit, GiveUp or Abort, and so on. For one thread at a time, but for StepSums.
class StepShard {
 public:
  virtual ~StepShard() = default;

  virtual const ParameterLayout& layout() const = 0;
  // How gradients and values travel.
  virtual const Compression& compression() const = 0;
  // Updates applied so far.
  virtual int64_t step() const = 0;
  // As many partial sums of a step as there is memory for.
  virtual int64_t max_partial_sums() const = 0;

  // The update from `step`, which is step(), to step + 1 starts. What is still being added to it when it has ended
  // counts no more.
  virtual std::shared_ptr<StepSums> Begin(int64_t step) = 0;
  // The learning rate of the update that began last, of the variables that are in no group.
  virtual float learning_rate() const = 0;
  // The sums, which are complete, become step() + 1.
  struct Committed {
    // What is not finite, so that the step counts and nothing else changed; nullopt: the update was applied.
    absl::optional<StepSums::NonFinite> skipped;
    double mean_loss = 0;  // over the slots
    bool stop = false;     // a slot asked for the run's end
    // Those of the slots that have one, in their order; serialized.
    std::vector<std::string> summaries;
    // The metrics of each slot that has any, in the order of the slots.
    std::vector<SlotMetrics> metrics;
    // At the steps for which the shard gathers them.
    absl::optional<UpdateNorms> norms;
  };
  virtual Committed Commit() = 0;
  // The update is given up, when nobody adds to its sums any more; it may begin anew.
  virtual void GiveUp() = 0;
  // The same while others may still add to them; no other update follows.
  virtual void Abort() = 0;
  // The errors of Assign.
  virtual absl::Status CheckAssign(absl::Span<const AssignedValue> values) const = 0;
  // Between updates: a new version of step() with these values. Errors: those of VariableStore::Assign.
  virtual absl::Status Assign(absl::Span<const AssignedValue> values) = 0;
  // Between updates: the updates that follow have these settings. Errors: those of VariableStore::SetOptimizer.
  virtual absl::Status SetOptimizer(const config::v1::OptimizerConfig& optimizer) = 0;
  // The state at step(), also while an update is in progress.
  virtual VariableSnapshot TakeSnapshot() const = 0;

  // The values at step() as workers get them, and their segments in the order in which they became final.
  virtual std::shared_ptr<const PublishedValues> values() const = 0;
  virtual const std::vector<int>& segment_order() const = 0;
  // Where other processes may map them; null when they cannot.
  virtual const v1::SharedMemoryHandle* values_memory() const = 0;
  // With top-k compression: the estimates of the slots' gradients at step(), zeros at step 0. Else empty.
  virtual std::shared_ptr<const GradientEstimates> estimates() const = 0;
  // The values that the update in progress writes, null when there is none, and their segments that are final.
  virtual std::shared_ptr<const PublishedValues> next_values() const = 0;
  virtual std::vector<int> finished_segments() const = 0;
  virtual size_t num_finished_segments() const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_SHARD_STEP_SHARD_H_
