#ifndef LOCKSTEP_TRAIN_SESSION_SESSION_H_
#define LOCKSTEP_TRAIN_SESSION_SESSION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep::train {

// What one Run has done.
struct StepResult {
  // On the chief the global step after the update. On a worker that of the step to which its block belongs, which the
  // run's update makes: the token's step + 1.
  int64_t global_step = 0;
  // Mean over the slots: of the step on the chief, of the block on a worker.
  double loss = 0;
  // On a worker: what became of the block; NONE if the chief set variables or settings before it said so. The chief's
  // updates are ACCEPTED.
  v1::ContributionResult fate = v1::CONTRIBUTION_NONE;
  // On the chief: something was not finite, and with training.skip_non_finite the step counts and changes nothing else.
  bool skipped = false;
};

// Values of one global step.
struct ReadResult {
  int64_t global_step = 0;
  std::vector<NamedTensor> values;
};

// A process's view of a run (docs/library.md). On the chief a step is a global step: Run returns each of them, in
// order, whichever processes compute. On a worker it is a block of slots that this process computes. Errors of every
// call: Unavailable and Aborted when the chief is gone or was restarted (a recoverable session opens itself anew);
// Cancelled when the process was told to stop; the run's failure. Run, RunStepFn and Close are for one thread at a
// time, the rest for any.
class Session {
 public:
  virtual ~Session() = default;

  // Chief: waits for the next global step that the caller has not had; one that no hook holds may fall behind, and
  // misses those that are more than 64 steps old. Worker: computes a block, and waits until its fate is known. `op` is
  // what the session was opened with. Errors: OutOfRange when the run is over: a clean end.
  virtual absl::StatusOr<StepResult> Run(const TrainOp& op) = 0;

  // The global step that the next Run makes one more of. Worker: waits for a block, which this process then holds.
  // Errors as those of Run.
  virtual absl::StatusOr<int64_t> NextStep() = 0;

  // On a worker: gives the block that NextStep has returned back, unless a Run takes it within `limit`. Other workers
  // compute it then, and the next Run asks for another block. For a program that may wait between the two: while it
  // holds a block, the run's step waits until the block's lease has ended. On the chief it does nothing.
  virtual void LimitHold(absl::Duration limit) {}

  // The loop is to be left: the run is over or failed, or a stop was requested here.
  virtual bool ShouldStop() = 0;
  virtual absl::StatusOr<int64_t> GlobalStep() = 0;
  // This process's session has the chief.
  virtual bool is_chief() const = 0;

  // Variables, optimizer state ("<variable>/Momentum") and "global_step", all of one step, without stopping training;
  // all of them when `names` is empty; a name given twice comes twice. Errors: InvalidArgument names what there is not;
  // ResourceExhausted when the caller is too slow for the steps.
  virtual absl::StatusOr<ReadResult> Read(absl::Span<const std::string> names) = 0;
  // Sets variables or optimizer state between two steps, on the chief. It is recorded, and a checkpoint of the step
  // with the new values is written before the next tokens go out. If a hook calls it in BeforeRun or AfterRun, it waits
  // for no file: after a restart the hook sees the steps since the newest checkpoint again, and must make the same
  // calls again. Exact only where the caller gates the step. Of a name given twice the last value counts. Errors:
  // InvalidArgument for a wrong name or shape; FailedPrecondition on a worker.
  virtual absl::Status Assign(absl::Span<const NamedTensor> values) = 0;
  // Changes settings of the run from the next step on, on the chief. The record and the checkpoints treat a change like
  // an assignment, and a program that is started again as before continues with it. Exact only where the caller gates
  // the step. After a change of the batch size to B a batch of (step, slot) is what it would be
  // in a run that always had B: of replicas R it begins at the example (step * R + slot) * B of the endless stream of
  // epochs (docs/sync.md). Errors: InvalidArgument names what is wrong or cannot be changed, before anything has
  // changed; FailedPrecondition on a worker.
  virtual absl::Status ChangeSettings(const SettingsChange& change) = 0;
  // Returns the run's configuration with all changes so far: what the next step is computed with if the caller gates
  // it. On a worker it may be newer than its block. Errors: Unavailable on a worker whose chief is gone.
  virtual absl::StatusOr<config::v1::RunSpec> Settings() = 0;
  // Change one setting.
  absl::Status ChangeOptimizer(const config::v1::OptimizerConfig& optimizer) {
    SettingsChange change;
    change.optimizer = optimizer;
    return ChangeSettings(change);
  }
  // A constant rate in place of the schedule. 0 freezes the variables, but not the optimizer's state.
  absl::Status ChangeLearningRate(float learning_rate) {
    SettingsChange change;
    change.learning_rate = learning_rate;
    return ChangeSettings(change);
  }
  absl::Status ChangeBatchSize(int64_t batch_size) {
    SettingsChange change;
    change.batch_size = batch_size;
    return ChangeSettings(change);
  }
  // The variables that have no value yet: empty as soon as the model is known.
  virtual absl::StatusOr<std::vector<std::string>> Uninitialized() = 0;

  // Saves the newest step at once, on the chief; returns the checkpoint's prefix.
  virtual absl::StatusOr<std::string> Save() = 0;
  // Writes a summary into the chief's event file, or to its summary_writer, at `global_step`: if absent, at the step of
  // the last Run, and before the first one at the last committed step. A chief without either takes summaries and
  // writes none. A worker sends up to 1 MiB in a call, and waits for a chief that is away; if the chief goes away
  // during the call, the summary may be written twice. Errors, after which the summary is dropped: ResourceExhausted if
  // too many events wait for a disk that hangs; OutOfRange when the run is over; InvalidArgument for more than 1 MiB
  // from a worker. What the disk itself refuses later, as when it is full, is logged.
  virtual absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step = absl::nullopt) = 0;
  // AddSummary for hooks and services of the library, which do not end a run because a disk hangs: the chief logs what
  // it drops.
  absl::Status AddOwnSummary(const v1::Summary& summary, int64_t global_step) {
    const absl::Status added = AddSummary(summary, global_step);
    return absl::IsResourceExhausted(added) ? absl::OkStatus() : added;
  }

  // Ends the run well: the chief saves, everyone is told. Where the caller gates step s, at s; else at the next commit.
  // On a worker that holds a block (NextStep) it travels in the report of the block's first slot, and the run ends when
  // that step is committed; one that holds none asks the chief for the end at the next commit, and so does one whose
  // report came too late. Where the stream broke the next block carries it. Of `reason` the first 1024 bytes are
  // recorded, 256 of a worker's; what is no UTF-8 is replaced. Errors on the chief: those of RunEnds::RequestFinish.
  virtual absl::Status RequestStop(const std::string& reason) = 0;

  // Leaves the run. On the chief it ends the run, if it is not over, and waits until the last step is saved and the
  // workers were told. Returns how the run ended.
  virtual absl::Status Close() = 0;

  // Leaves the run, which another session may continue: the chief saves, and its workers wait for a successor.
  // (RequestStop, TensorFlow's name, ends the run.) Errors: those of saving the chief's last step.
  virtual absl::Status Stop() { return absl::OkStatus(); }
};

// Forwards everything: the base of decorators.
class SessionDecorator : public Session {
 public:
  // `session` must outlive this.
  explicit SessionDecorator(Session* session) : session_(session) {}

  absl::StatusOr<StepResult> Run(const TrainOp& op) override { return session_->Run(op); }
  absl::StatusOr<int64_t> NextStep() override { return session_->NextStep(); }
  void LimitHold(absl::Duration limit) override { session_->LimitHold(limit); }
  bool ShouldStop() override { return session_->ShouldStop(); }
  absl::StatusOr<int64_t> GlobalStep() override { return session_->GlobalStep(); }
  bool is_chief() const override { return session_->is_chief(); }
  absl::StatusOr<ReadResult> Read(absl::Span<const std::string> names) override { return session_->Read(names); }
  absl::Status Assign(absl::Span<const NamedTensor> values) override { return session_->Assign(values); }
  absl::Status ChangeSettings(const SettingsChange& change) override { return session_->ChangeSettings(change); }
  absl::StatusOr<config::v1::RunSpec> Settings() override { return session_->Settings(); }
  absl::StatusOr<std::vector<std::string>> Uninitialized() override { return session_->Uninitialized(); }
  absl::StatusOr<std::string> Save() override { return session_->Save(); }
  absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) override {
    return session_->AddSummary(summary, global_step);
  }
  absl::Status RequestStop(const std::string& reason) override { return session_->RequestStop(reason); }
  absl::Status Close() override { return session_->Close(); }
  absl::Status Stop() override { return session_->Stop(); }

 private:
  Session* const session_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_SESSION_H_
