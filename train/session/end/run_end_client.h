#ifndef LOCKSTEP_TRAIN_SESSION_END_RUN_END_CLIENT_H_
#define LOCKSTEP_TRAIN_SESSION_END_RUN_END_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep::train {

// Returns true if the record in a chief's logdir says that the run ended successfully. Returns false if the record
// cannot be read, or if a starting chief is replacing it.
bool RecordSaysFinished(FileSystem* fs, const std::string& logdir);

// A client of the chief. When the chief does not answer, it checks the chief's logdir for the end of the run:
// GetRunSpec returns EndOfRun (common/cluster/end_of_run.h) if the record says that the run ended successfully. A
// process that never had a session trusts the record only after `kGrace` without an answer, because a chief that
// continues the run may start later than its workers. Thread-safe.
class RunEndClient : public ChiefClient {
 public:
  static constexpr absl::Duration kGrace = absl::Minutes(1);

  struct Options {
    // `fs` and `clock` must outlive the client.
    FileSystem* fs = nullptr;
    Clock* clock = nullptr;
    // The chief's logdir as seen from this machine.
    std::string logdir;
  };
  RunEndClient(Options options, std::unique_ptr<ChiefClient> chief);

  absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest& request) override {
    return chief_->SetInitialValues(request);
  }
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) override {
    return chief_->GetCanaryValues(request);
  }
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) override {
    return chief_->Heartbeat(request);
  }
  absl::StatusOr<v1::RunStatus> GetStatus() override { return chief_->GetStatus(); }
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request) override {
    return chief_->RequestFinish(request);
  }
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request) override {
    return chief_->AddSummary(request);
  }
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) override {
    return chief_->ReadVariables(request);
  }
  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const v1::ModelSpec& model) override {
    return chief_->OpenStepChannel(options, model);
  }
  void CancelConnecting() override { chief_->CancelConnecting(); }

 private:
  // Records that the chief has not answered. Returns true if the client may read its logdir.
  bool MayBelieve() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::unique_ptr<ChiefClient> chief_;
  Mutex mutex_;
  bool had_session_ ABSL_GUARDED_BY(mutex_) = false;
  // The time of the first unanswered call since the chief last answered.
  absl::optional<absl::Time> absent_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_RUN_END_CLIENT_H_
