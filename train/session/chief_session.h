#ifndef LOCKSTEP_TRAIN_SESSION_CHIEF_SESSION_H_
#define LOCKSTEP_TRAIN_SESSION_CHIEF_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/server/chief/chief_options.h"
#include "lockstep/server/process/chief_host.h"
#include "lockstep/train/session/end/run_result.h"
#include "lockstep/train/session/local_workers.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/train/session/step_gate.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep::train {

// The chief's machine and the function that serves other processes. The simulation substitutes its own.
struct SessionMachine : ChiefMachine {
  // Called with SessionOptions::listen unless that is empty.
  ServeFunction serve = ServeOverGrpc();
};

// The session in the chief's process. It creates the chief, which serves the run. Unless SessionOptions::local_workers
// is 0, threads of the process compute. Destroying the session without Close stops the chief like SIGTERM: the last
// step is saved, and workers wait for a successor. An error from init_fn, from a local worker, or from a checkpoint
// that no caller waits for has the same effect. After SessionOptions::stop, the destructor ends the process if a local
// worker hangs in a block and the last step is saved.
class ChiefSession : public Session, public StepGate {
 public:
  // Returns when the model is known and its variables have values. No step begins before AllowThrough. Errors: those of
  // Chief::Create; Unavailable if an address cannot be bound; Cancelled if the process was stopped; the error from a
  // local worker that cannot compute.
  static absl::StatusOr<std::unique_ptr<ChiefSession>> Open(SessionOptions options, const SessionMachine& machine = {});
  ~ChiefSession() override;

  absl::StatusOr<StepResult> Run(const TrainOp& op) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<int64_t> NextStep() override { return last_seen(); }
  bool ShouldStop() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<int64_t> GlobalStep() override;
  bool is_chief() const override { return true; }
  absl::StatusOr<ReadResult> Read(absl::Span<const std::string> names) override;
  absl::Status Assign(absl::Span<const NamedTensor> values) override { return AssignAs(ChangedBy::kProgram, values); }
  absl::Status ChangeSettings(const SettingsChange& change) override { return ChangeAs(ChangedBy::kProgram, change); }
  absl::StatusOr<config::v1::RunSpec> Settings() override;
  absl::StatusOr<std::vector<std::string>> Uninitialized() override;
  absl::StatusOr<std::string> Save() override;
  absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RequestStop(const std::string& reason) override { return RequestFinish(reason, nullptr); }
  absl::Status Close() override;
  absl::Status Stop() override;

  void AllowThrough(int64_t limit) override;
  void SetState(int64_t step, std::vector<v1::SessionState::Hook> hooks) override;
  absl::Status EndAt(int64_t step, std::vector<v1::SessionState::Hook> hooks, const std::string& reason) override;
  absl::Status AssignByHook(absl::Span<const NamedTensor> values) override {
    return AssignAs(ChangedBy::kHook, values);
  }
  absl::Status ChangeByHook(const SettingsChange& change) override { return ChangeAs(ChangedBy::kHook, change); }
  bool MayChangeProgram() const override { return host_.chief()->changes()->MayChangeProgram(); }
  void NoteProgramChange(const std::string& what) override { host_.chief()->changes()->NoteProgramChange(what); }
  v1::SessionState restored() const override;
  absl::Status failure() const override;
  void SeekTo(int64_t step) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the address that workers connect to. Empty if there is no socket.
  std::string address() const { return host_.served().address; }
  // Returns SessionOptions::listen with the bound port, so that the next session in this process binds the same one.
  std::string listening() const { return host_.served().listening; }
  Chief* chief() const { return host_.chief(); }

 private:
  ChiefSession(SessionOptions options, const SessionMachine& machine);
  ChiefHost::Options HostOptions(const SessionMachine& machine);
  absl::Status Start(const SessionMachine& machine);
  absl::Status Create();
  // `last_state` may be null.
  absl::Status RequestFinish(const std::string& reason, const v1::SessionState* last_state);
  absl::Status AssignAs(ChangedBy by, absl::Span<const NamedTensor> values);
  absl::Status ChangeAs(ChangedBy by, const SettingsChange& change);
  // Stops the run because a part of this process cannot continue. Run, Close, and requests to change or end the run
  // return the first such error.
  void Fail(absl::Status why);
  // Ends the process if it was stopped, the last step is saved, and a local worker hangs in a block.
  void EndIfWorkerHangs();
  // If the process was asked to stop, forwards this to the chief before any other request.
  void TakeStop();
  // Blocks until the run has ended, for any reason. If the run is over, records that in the address file.
  absl::Status AwaitEnd();
  Training* training() const { return host_.chief()->training(); }
  int64_t last_seen() const ABSL_LOCKS_EXCLUDED(mutex_);

  const SessionOptions options_;
  RunResult result_;
  ChiefHost host_;
  int64_t stop_listener_ = StopSignal::kNone;
  std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<LocalWorkers> workers_;
  // The op that Run checked last. Only Run uses it.
  const TrainOp* checked_op_ = nullptr;
  mutable Mutex mutex_;
  // The last global step that the caller has seen.
  int64_t last_seen_ ABSL_GUARDED_BY(mutex_) = 0;
  // The thread that ends the run. It waits for the end, saves, and notifies the workers.
  std::unique_ptr<Thread> finisher_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_CHIEF_SESSION_H_
