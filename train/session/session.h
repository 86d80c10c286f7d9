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

// The result of a Run.
struct StepResult {
  // On the chief, the global step after the update. On a worker, the global step after the update to which the block
  // contributes, which is the token's step + 1.
  int64_t global_step = 0;
  // On the chief, the mean loss over the step's slots. On a worker, the mean loss over the block's slots.
  double loss = 0;
  // On the chief, always ACCEPTED. On a worker, the verdict on the block, or NONE if the chief set variables or
  // settings before it sent a verdict.
  v1::ContributionResult outcome = v1::CONTRIBUTION_NONE;
  // On the chief, true if the step counted but had no other effect, because a value was not finite
  // (training.skip_non_finite).
  bool skipped = false;
};

// Values at one global step.
struct ReadResult {
  int64_t global_step = 0;
  std::vector<NamedTensor> values;
};

// A process's view of a run (docs/library.md). On the chief, a step is a global step: Run returns all of them in order,
// whichever processes compute them. On a worker, a step is a block of slots that this process computes. Errors of every
// call: Unavailable and Aborted if the chief is gone or was restarted (a recoverable session reopens itself); Cancelled
// if the process was stopped; the error with which the run failed. Only one thread at a time may call Run, Close and
// MonitoredSession::RunStepFn; any thread may call the other methods.
class Session {
 public:
  virtual ~Session() = default;

  // On the chief, waits for the next global step that the caller has not seen. A caller whose hooks do not hold the run
  // may fall behind, and misses steps that are more than 64 steps old. On a worker, computes a block and waits for the
  // verdict on it. `op` must be the op with which the session was opened; settings in it are ignored. Errors:
  // OutOfRange if the run is over, a clean end; InvalidArgument for a different op (CheckSameOp).
  virtual absl::StatusOr<StepResult> Run(const TrainOp& op) = 0;

  // Returns the global step at which the next Run starts. On a worker, waits for a block, which this process then holds
  // until a Run computes it. Errors: those of Run.
  virtual absl::StatusOr<int64_t> NextStep() = 0;

  // On a worker, gives back the block returned by NextStep unless a Run takes it within `limit`. Other workers then
  // compute that block, and the next Run requests another one. Intended for programs that may wait between the two
  // calls, because the step in progress waits for a held block until its lease expires. Does nothing on the chief.
  virtual void LimitHold(absl::Duration limit) {}

  // Returns true if the loop should end because the run is over, the run has failed, or a stop was requested here.
  virtual bool ShouldStop() = 0;
  virtual absl::StatusOr<int64_t> GlobalStep() = 0;
  // Returns true in the chief's process.
  virtual bool is_chief() const = 0;

  // Returns variables, optimizer state ("<variable>/Momentum") and "global_step" at one step, without stopping
  // training. If `names` is empty, returns all of them. A name that is given twice is returned twice. Errors:
  // InvalidArgument naming what does not exist; ResourceExhausted if the caller cannot keep up with the steps.
  virtual absl::StatusOr<ReadResult> Read(absl::Span<const std::string> names) = 0;
  // Sets variables or optimizer state between two steps, on the chief. The change is recorded, and a checkpoint of the
  // step with the new values is written before the chief sends further tokens. A call from a hook's BeforeRun or
  // AfterRun does not wait for the disk: after a restart, the hook sees the steps since the newest checkpoint again,
  // and must make the same calls again. If the caller does not gate the step, the change may take effect at a later
  // step. If a name is given twice, the last value counts. Errors: InvalidArgument for a wrong name or shape;
  // FailedPrecondition on a worker.
  virtual absl::Status Assign(absl::Span<const NamedTensor> values) = 0;
  // Changes settings of the run from the next step on, on the chief. Changes are recorded and saved in checkpoints like
  // assignments, and a program that is restarted with its old settings continues with the new ones. If the caller does
  // not gate the step, the change may take effect at a later step. After the batch size changes to B, the batch of
  // (step, slot) is the same as in a run that always had B: with R replicas, it begins at example (step * R + slot) * B
  // of the endless stream of epochs (docs/sync.md). Errors: InvalidArgument naming a setting that is wrong or cannot be
  // changed, in which case nothing has changed; FailedPrecondition on a worker.
  virtual absl::Status ChangeSettings(const SettingsChange& change) = 0;
  // Returns the run's configuration with all changes so far. If the caller gates the next step, that step is computed
  // with this configuration. On a worker, it may be newer than the worker's block. Errors: Unavailable on a worker
  // whose chief is gone.
  virtual absl::StatusOr<config::v1::RunSpec> Settings() = 0;
  // Changes one setting.
  absl::Status ChangeOptimizer(const config::v1::OptimizerConfig& optimizer) {
    SettingsChange change;
    change.optimizer = optimizer;
    return ChangeSettings(change);
  }
  // Replaces the learning-rate schedule with a constant rate. A rate of 0 freezes the variables, but not the
  // optimizer's state.
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
  // Returns the variables that have no value yet. There are none once the model is known.
  virtual absl::StatusOr<std::vector<std::string>> Uninitialized() = 0;

  // Saves the newest step immediately, on the chief. Returns the checkpoint's prefix.
  virtual absl::StatusOr<std::string> Save() = 0;
  // Writes a summary at `global_step` to the chief's event file or summary_writer. If `global_step` is absent, it is
  // the step of the last Run or, before the first Run, the last committed step. A chief that has neither accepts
  // summaries but writes none. A worker sends up to 1 MiB per call, and waits for an absent chief. If the chief goes
  // away during the call, the summary may be written twice. Errors, after which the summary is dropped:
  // ResourceExhausted if too many events wait for a hanging disk; OutOfRange if the run is over; InvalidArgument for
  // more than 1 MiB from a worker. Later disk errors, for instance when the disk is full, are logged.
  virtual absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step = absl::nullopt) = 0;
  // Calls AddSummary for the library's own hooks and services, but ignores ResourceExhausted, because a hanging disk
  // must not end the run. The chief logs the summaries that it drops.
  absl::Status AddOwnSummary(const v1::Summary& summary, int64_t global_step) {
    const absl::Status added = AddSummary(summary, global_step);
    return absl::IsResourceExhausted(added) ? absl::OkStatus() : added;
  }

  // Ends the run successfully: the chief saves and notifies all workers. If the caller gates step s, the run ends at s,
  // otherwise at the next commit. On a worker that holds a block (NextStep), the request is sent in the report for the
  // block's first slot, and the run ends when that step is committed. A worker that holds no block, or whose report was
  // too late, asks the chief to end the run at the next commit. If the stream broke, the request is sent with the next
  // block. The first 1024 bytes of `reason`, 256 on a worker, are recorded, with invalid UTF-8 replaced. Errors on the
  // chief: those of RunEnds::RequestFinish.
  virtual absl::Status RequestStop(const std::string& reason) = 0;

  // Leaves the run. On the chief, ends the run if it is not over, and waits until the last step is saved and the
  // workers are notified. Returns how the run ended.
  virtual absl::Status Close() = 0;

  // Leaves the run so that another session can continue it: the chief saves, and its workers wait for a successor.
  // (RequestStop, a name from TensorFlow, ends the run.) Errors: those of saving the chief's last step.
  virtual absl::Status Stop() { return absl::OkStatus(); }
};

// Base class of decorators. Forwards every call to another session.
class SessionDecorator : public Session {
 public:
  // `session` must outlive this object.
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
