#ifndef LOCKSTEP_TRAIN_REPLAY_RUN_REPLAY_H_
#define LOCKSTEP_TRAIN_REPLAY_RUN_REPLAY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/arrivals/recorded_order.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/train/replay/contribution.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// Recomputes steps of a recorded run in this process, bit for bit. Starts from one of the run's checkpoints, and uses
// the recorded changes of settings and values and, if the weights depend on it, the recorded order of arrival. Only
// reads the logdir, and may do so while the run continues. Life cycle: Open, then one call to ComputeSteps or
// ComputeSlot. Use from one thread.
class RunReplay {
 public:
  struct Step {
    int64_t step = 0;  // after the update
    double mean_loss = 0;
    bool skipped = false;  // training.skip_non_finite
    // The logdir's checkpoint of this step, with which the result was compared, and the first tensor that differs.
    absl::optional<std::string> checkpoint;
    absl::optional<std::string> difference;
  };
  struct Slot {
    // Global step of the values used for the computation.
    int64_t values_step = 0;
    // Description of the batch: a slot of a step, or a position in a stream.
    std::string batch;
    float loss = 0;
    float weight = 1;
    // The tensors "gradient/<variable>", as the chief adds it, "update/<number>", "input/features", "input/labels" and
    // "input/weights".
    std::vector<std::pair<std::string, Tensor>> tensors;
  };
  struct Options {
    FileSystem* fs = FileSystem::Real();  // must outlive the replay
    std::string logdir;
    // Overrides of the recorded configuration, such as the new path of data that has been moved.
    std::vector<std::string> set;
    // Required.
    WorkloadFactory make_workload;
    // True if another framework than Lockstep computes the workload's gradients.
    bool has_framework = false;
    // Receives each step computed by ComputeSteps; may be null.
    std::function<void(const Step&)> on_step;
  };

  // Errors: NotFound if the logdir has no run; InvalidArgument if the configuration is invalid; FailedPrecondition if
  // this program cannot reproduce the run's bits, because its model, data or arithmetic differs.
  static absl::StatusOr<std::unique_ptr<RunReplay>> Open(Options options);

  // Computes the steps after `first`, up to and including `last`. Begins with the newest checkpoint at or before
  // `first` from which that is possible. Errors: NotFound if there is none, or if the order of arrival is not on
  // record; InvalidArgument if a value is not finite.
  absl::Status ComputeSteps(int64_t first, int64_t last);
  // Computes a slot of the update that led, or would have led, to global step `step`.
  absl::StatusOr<Slot> ComputeSlot(int64_t step, int64_t slot);

  // Returns the checkpoint from which the computation began.
  const std::string& checkpoint() const { return checkpoint_; }
  // Returns the state after the last step that was computed.
  VariableSnapshot TakeSnapshot() const { return store_->TakeSnapshot(); }

 private:
  // A version of the values: the global step and the number of assignments.
  using Version = std::pair<int64_t, int64_t>;

  RunReplay(Options options, v1::RunRecord record) : options_(std::move(options)), record_(std::move(record)) {}
  absl::Status CheckProgram();
  absl::Status FindCheckpoints();
  bool has_order() const;
  int64_t slots() const { return record_.config().training().replicas_to_aggregate(); }

  // Restores the newest checkpoint at or before `first` from which `last` can be reached.
  absl::Status Start(int64_t first, int64_t last);
  // Reads the order of the steps up to `last`, and sets needed_.
  absl::Status ReadOrder(int64_t last);
  absl::Status Restore(int64_t step, const std::string& prefix);
  absl::Status AdvanceTo(int64_t last, const std::function<void(const Step&)>& on_step);
  absl::Status ComputeStep(Step* result);
  // Computes a slot of the next step into `sums`.
  absl::Status Contribute(int64_t slot, StepSums* sums);
  absl::Status ContributeArrival(const v1::Arrival& arrival, StepSums* sums);
  // Sets the values that the run assigned at the current step. Reads them from that step's checkpoint.
  absl::Status Assign();
  // Compares the current state with the logdir's checkpoint of its step, if there is one.
  absl::Status Compare(Step* result);
  // Keeps the current values for later contributions, and drops values that are no longer needed.
  void KeepVersion();
  absl::StatusOr<std::shared_ptr<const PublishedValues>> FindVersion(const v1::Arrival& arrival) const;
  v1::Token TokenOf(const v1::Arrival& arrival) const;
  absl::Status AddTensors(const KeptContribution& kept, int64_t step, int64_t slot, Slot* result);

  const Options options_;
  const v1::RunRecord record_;
  std::map<int64_t, std::string> checkpoints_;  // prefixes by step
  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<StepShard> shard_;
  std::unique_ptr<ContributionComputer> computer_;
  std::string checkpoint_;
  // The number of the run's assignments that the current values include.
  int64_t assignments_ = 0;
  absl::optional<RecordedOrder> order_;
  // The reason why the order of arrival is unknown for steps before the first one in needed_.
  absl::Status order_end_;
  // Maps a step to the oldest step whose values are needed by the contributions to later steps.
  std::map<int64_t, int64_t> needed_;
  std::map<Version, std::shared_ptr<const PublishedValues>> versions_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_REPLAY_RUN_REPLAY_H_
