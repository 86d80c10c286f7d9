#ifndef LOCKSTEP_COMMON_CLIENT_TESTING_FAKE_CHIEF_CLIENT_H_
#define LOCKSTEP_COMMON_CLIENT_TESTING_FAKE_CHIEF_CLIENT_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// A scripted chief. The n-th call of a kind gets the n-th answer, and calls after the end of the list get the last
// answer again. Each stream plays the next entry of `streams`. Set the answers before the first call or while no call
// is in progress. Thread-safe.
class FakeChiefClient : public ChiefClient {
 public:
  // The outcome of one AwaitToken. After the last event of a stream, AwaitToken blocks until CancelWait or Cancel.
  struct Event {
    absl::Status status;
    StepChannel::Assignment assignment;
  };
  static Event Fails(absl::Status status) { return {std::move(status), {}}; }
  static Event Gives(int64_t step, int64_t first_slot, int64_t slot_count);
  static Event Finishes(const std::string& message = "");

  std::vector<absl::Status> get_run;       // empty: OK
  std::vector<absl::Status> open_session;  // empty: OK
  std::vector<absl::Status> heartbeat;     // empty: OK
  bool heartbeat_finished = false;
  // GetRunSpec blocks until CancelConnecting.
  bool get_run_hangs = false;
  config::v1::RunSpec config;
  std::string run_id = "run";
  // Returned in replies to OpenSession.
  int64_t global_step = 0;
  // If true, requests the initial values of a worker that has some. A successful SetInitialValues with `end` makes it
  // false.
  bool wants_initial_values = false;
  // The answers to SetInitialValues.
  std::vector<absl::Status> set_initial_values;  // empty: OK
  // Returned in replies to OpenSession.
  std::string initial_values_digest;
  // If true, requests a canary from sessions that do not provide one. All values from which to compute it are
  // canary_value.
  bool wants_canary = false;
  float canary_value = 0.25f;
  std::vector<std::deque<Event>> streams;
  // Replies to ReadVariables. After the last one, ReadVariables returns Unavailable.
  std::deque<absl::StatusOr<v1::ReadVariablesReply>> reads;

  absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::RunStatus> GetStatus() override { return v1::RunStatus(); }
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const v1::ModelSpec& model) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelConnecting() override ABSL_LOCKS_EXCLUDED(mutex_);

  // The calls made so far.
  struct Calls {
    int get_run = 0;
    int heartbeat = 0;
    int canary_values = 0;
    std::vector<v1::SetInitialValuesRequest> initial_values;
    std::vector<v1::ReadVariablesRequest> reads;
    std::vector<v1::RequestEndRequest> ends;
    std::vector<v1::AddSummaryRequest> summaries;
    std::vector<v1::OpenSessionRequest> open_session;
    std::vector<StepOptions> streams;
    // Slots reported and gradients sent, over all streams.
    int64_t reports = 0;
    int gradients = 0;
    std::vector<std::vector<uint64_t>> digests;
    int ends_of_input = 0;
    int await_token = 0;
    int leaves = 0;
    int cancels = 0;
  };
  Calls calls() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until AwaitToken has been called n times, over all streams.
  void AwaitTokenCalls(int n) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until GetRunSpec has been called n times.
  void AwaitGetRunCalls(int n) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Channel;

  static absl::Status Answer(const std::vector<absl::Status>& answers, size_t call);

  mutable Mutex mutex_;
  CondVar changed_;
  Calls calls_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_TESTING_FAKE_CHIEF_CLIENT_H_
