#include "lockstep/server/local/local_chief_client.h"

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/step_stream.h"
#include "lockstep/common/client/streamed_step_channel.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/ps/versions/value_versions.h"

namespace lockstep {
namespace {

// Wakes the worker while it waits for a reply.
class AutoResetEvent : public StepListener {
 public:
  void OnReplyReady() override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    signaled_ = true;
    changed_.SignalAll();
  }

  void OnClosed(const absl::Status& why, bool) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    end_.Update(why);
    changed_.SignalAll();
  }

  void OnResume() override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    resumed_ = true;
    changed_.SignalAll();
  }

  // Blocks until OnResume. If the connection was closed, returns the reason as an error.
  absl::Status AwaitResume() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!resumed_ && end_.ok()) changed_.Wait(&mutex_);
    resumed_ = false;
    return end_;
  }

  // Makes Wait return without blocking.
  void CancelWait() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    wait_cancelled_ = true;
    changed_.SignalAll();
  }

  // Blocks until a reply may be ready, and returns true. Returns false after CancelWait. If the connection was closed,
  // returns the reason as an error.
  absl::StatusOr<bool> Wait() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!signaled_ && !wait_cancelled_ && end_.ok()) changed_.Wait(&mutex_);
    const bool signaled = std::exchange(signaled_, false);
    RETURN_IF_ERROR(end_);
    return signaled;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool signaled_ ABSL_GUARDED_BY(mutex_) = false;
  bool wait_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool resumed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

// A Step stream to a chief in the same process. Send delivers frames on the worker's thread, with the gradients where
// the worker wrote them; replies refer to the values in the chief's memory. For one thread, except CancelWait and
// Cancel.
class LocalStepStream : public StepStream {
 public:
  // `chief` must outlive the stream. Errors: as for Sessions::OpenStep.
  static absl::StatusOr<std::unique_ptr<StepStream>> Open(Chief* chief, const ChiefClient::StepOptions& options);
  ~LocalStepStream() override;

  // Gradients are summed whole, as they arrive.
  FrameSizes sizes() const override { return FrameSizes(); }
  absl::Status Send(const StepFrame& frame) override;
  // Does nothing, because no frame is ever pending.
  absl::Status Poll(Receiver*) override { return absl::OkStatus(); }
  absl::StatusOr<bool> Receive(Receiver* receiver) override;
  void Drain() override {}
  absl::Status Close() override;
  void CancelWait() override;
  void Cancel() override;

 private:
  LocalStepStream(bool sparse, std::shared_ptr<AutoResetEvent> event, std::shared_ptr<StepConnection> connection);

  // Closes the connection with the status `why`.
  absl::Status Break(absl::Status why);
  // Adds the values in the chief's memory to a reply with a token.
  void HandOver(StepReplyFrame* reply) const;

  // True if gradients are compressed as differences from estimates.
  const bool sparse_;
  const std::shared_ptr<AutoResetEvent> event_;
  const std::shared_ptr<StepConnection> connection_;
  absl::Status status_;  // why the stream was closed
};

absl::StatusOr<std::unique_ptr<StepStream>> LocalStepStream::Open(Chief* chief,
                                                                  const ChiefClient::StepOptions& options) {
  auto event = std::make_shared<AutoResetEvent>();
  ASSIGN_OR_RETURN(auto connection,
                   chief->sessions()->OpenStep(options.session_id, options.generation, ValuePath::kInProcess, event));
  return std::unique_ptr<StepStream>(
      new LocalStepStream(options.compression.top_k > 0, std::move(event), std::move(connection)));
}

LocalStepStream::LocalStepStream(bool sparse, std::shared_ptr<AutoResetEvent> event,
                                 std::shared_ptr<StepConnection> connection)
    : sparse_(sparse), event_(std::move(event)), connection_(std::move(connection)) {}

LocalStepStream::~LocalStepStream() { Close().IgnoreError(); }

absl::Status LocalStepStream::Send(const StepFrame& frame) {
  RETURN_IF_ERROR(status_);
  for (bool waits = true; waits;) {
    absl::Status status = connection_->OnFrame(frame, &waits);
    if (status.ok() && waits) status = event_->AwaitResume();
    if (!status.ok()) return Break(std::move(status));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> LocalStepStream::Receive(Receiver* receiver) {
  RETURN_IF_ERROR(status_);
  for (StepReplyFrame reply;; Clear(&reply)) {
    while (!connection_->NextReply(&reply)) {
      if (receiver->OnIdle()) continue;
      const absl::StatusOr<bool> signaled = event_->Wait();
      if (!signaled.ok()) return Break(signaled.status());
      if (!*signaled) return false;
    }
    if (reply.token) HandOver(&reply);
    const absl::StatusOr<bool> more = receiver->OnReply(reply);
    if (!more.ok()) return Break(more.status());
    if (!*more) return true;
  }
}

void LocalStepStream::HandOver(StepReplyFrame* reply) const {
  const std::shared_ptr<const PublishedValues> published = connection_->values();
  HandedOverValues& values = reply->handed_over.emplace();
  values.flat = published->flat;
  values.constants = published->constants->flat;
  values.type = published->type;
  if (published->encoded != nullptr) {
    // `values.flat` keeps the whole version alive, not only its flat part.
    values.flat = std::shared_ptr<const AlignedBuffer>(published, published->flat.get());
    values.encoded = published->encoded->as<uint16_t>();
  }
  if (!sparse_) return;
  const auto estimates = connection_->estimates();
  reply->estimates_owner = estimates;
  const v1::Token& token = *reply->token;
  for (int64_t slot = token.first_slot(); slot < token.first_slot() + token.slot_count(); ++slot) {
    values.estimates.push_back(estimates->at(slot).get());
  }
}

absl::Status LocalStepStream::Break(absl::Status why) {
  if (!status_.ok()) return status_;
  status_ = std::move(why);
  connection_->Close();
  return status_;
}

absl::Status LocalStepStream::Close() { return Break(absl::UnavailableError("the stream was closed")); }

void LocalStepStream::CancelWait() { event_->CancelWait(); }

void LocalStepStream::Cancel() { event_->OnClosed(absl::CancelledError("the stream was cancelled"), /*at_once=*/true); }

class LocalChiefClient : public ChiefClient {
 public:
  explicit LocalChiefClient(Chief* chief) : chief_(chief) {}

  absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override {
    RETURN_IF_ERROR(CheckConnecting());
    return chief_->sessions()->GetRunSpec();
  }
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) override {
    RETURN_IF_ERROR(CheckConnecting());
    return chief_->sessions()->OpenSession(request);
  }
  absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest& request) override {
    RETURN_IF_ERROR(CheckConnecting());
    return chief_->sessions()->SetInitialValues(request);
  }
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) override {
    RETURN_IF_ERROR(CheckConnecting());
    return chief_->sessions()->GetCanaryValues(request);
  }
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) override {
    return chief_->sessions()->Heartbeat(request);
  }
  absl::StatusOr<v1::RunStatus> GetStatus() override { return chief_->GetStatus(); }
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request) override {
    return chief_->sessions()->RequestFinish(request);
  }
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request) override {
    return chief_->sessions()->AddSummary(request);
  }
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) override {
    return chief_->ReadVariables(request);
  }

  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const v1::ModelSpec& model) override {
    ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(model));
    ASSIGN_OR_RETURN(std::unique_ptr<StepStream> stream, LocalStepStream::Open(chief_, options));
    // Nothing is sent over a network, so nothing is encoded: values with 16-bit rounding stay float32.
    StepOptions local = options;
    local.compression.gradients = local.compression.values = v1::DT_FLOAT;
    local.chief_memory.reset();
    return std::unique_ptr<StepChannel>(new StreamedStepChannel(std::move(stream), local, std::move(layout)));
  }

  void CancelConnecting() override { stopped_ = true; }

 private:
  absl::Status CheckConnecting() const {
    return stopped_.load() ? absl::CancelledError("the client was stopped") : absl::OkStatus();
  }

  Chief* const chief_;
  std::atomic<bool> stopped_{false};
};

}  // namespace

std::unique_ptr<ChiefClient> NewLocalChiefClient(Chief* chief) { return std::make_unique<LocalChiefClient>(chief); }

}  // namespace lockstep
