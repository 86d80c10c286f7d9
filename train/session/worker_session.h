#ifndef LOCKSTEP_TRAIN_SESSION_WORKER_SESSION_H_
#define LOCKSTEP_TRAIN_SESSION_WORKER_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/client/connector.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/worker/session/block/block_observer.h"
#include "lockstep/worker/session/training_worker.h"

namespace lockstep::train {

// The session in a worker's process. Each Run computes a block of slots. A thread of the session connects to the chief,
// finds it again after a restart, and computes while Run waits. After the chief has restarted, one Run returns Aborted,
// and the next one continues.
class WorkerSession : public Session, private BlockObserver {
 public:
  // Returns when the chief has accepted this worker. `machine` supplies the options that `options` does not set.
  // Without a `connector`, the session connects over gRPC. Errors: InvalidArgument for a wrong master; Unavailable if
  // no chief was found within max_wait; FailedPrecondition if the model or data differ from the run's; Cancelled if the
  // process was stopped; OutOfRange if the run is over.
  static absl::StatusOr<std::unique_ptr<WorkerSession>> Open(SessionOptions options,
                                                             const TrainingWorker::Options& machine = {},
                                                             Connector* connector = nullptr);
  ~WorkerSession() override;

  absl::StatusOr<StepResult> Run(const TrainOp& op) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<int64_t> NextStep() override ABSL_LOCKS_EXCLUDED(mutex_);
  void LimitHold(absl::Duration limit) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool ShouldStop() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<int64_t> GlobalStep() override;
  bool is_chief() const override { return false; }
  absl::StatusOr<ReadResult> Read(absl::Span<const std::string> names) override;
  absl::Status Assign(absl::Span<const NamedTensor> values) override;
  absl::Status ChangeSettings(const SettingsChange& change) override;
  absl::StatusOr<config::v1::RunSpec> Settings() override;
  absl::StatusOr<std::vector<std::string>> Uninitialized() override;
  absl::StatusOr<std::string> Save() override;
  absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the request with the block that waits for Run, in the report for its first slot. If no block is waiting, asks
  // the chief directly.
  absl::Status RequestStop(const std::string& reason) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Close() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The state shared by the caller and the computing thread.
  struct State {
    int streams = 0;               // streams opened so far
    int sessions = 0;              // like streams, but without those that continue the previous session
    int known_sessions = 0;        // sessions that the caller knows of
    absl::optional<int64_t> step;  // the step of the block that is waiting for Run
    // Time at which the block that is waiting for Run is given back unless Run has begun. If nullopt, the block is
    // kept.
    absl::optional<absl::Time> hold_until;
    int asking = 0;                       // callers in NextStep, and in AddSummary while there is no chief
    bool running = false;                 // the caller is in Run
    absl::optional<StepResult> computed;  // this Run's block, until the verdict on it is known
    absl::optional<StepResult> result;
    absl::optional<int64_t> last_step;  // the global step that the last Run returned
    // Reason of a pending request to end the run at the update after `stop_step`. Absent if there is no such request,
    // or if the chief has already been asked to end the run.
    absl::optional<std::string> stop;
    int64_t stop_step = 0;
    bool stop_travels = false;  // the last block carries the stop
    bool leaving = false;       // no further blocks follow
    bool over = false;          // the chief says that the run is over
    absl::optional<absl::Status> ended;
  };

  explicit WorkerSession(SessionOptions options);
  absl::Status Start(TrainingWorker::Options worker, Connector* connector) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the reason why there is no block: the session was replaced, or the run has ended for this worker.
  absl::Status WhyNot() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if a Run is waiting for a block and knows of this session.
  bool RunWaits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);
  // If a stop request is pending, asks the chief to end the run, because a report may have failed to carry the request.
  absl::Status SendStop() ABSL_LOCKS_EXCLUDED(mutex_);

  void OnSession(bool goes_on) override ABSL_LOCKS_EXCLUDED(mutex_);
  Decision BeforeBlock(const v1::Token& token, BlockAdditions* additions) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool AwaitDemand() override ABSL_LOCKS_EXCLUDED(mutex_);
  void AfterBlock(const v1::Token& token, double mean_loss) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnResult(v1::ContributionResult result) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnRunOver() override ABSL_LOCKS_EXCLUDED(mutex_);

  const SessionOptions options_;
  int64_t stop_listener_ = StopSignal::kNone;
  std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<TrainingWorker> worker_;
  std::unique_ptr<Thread> thread_;
  // The op that Run checked last. Only Run uses it.
  const TrainOp* checked_op_ = nullptr;
  Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_WORKER_SESSION_H_
