#include "lockstep/server/local/local_step_stream.h"

#include <utility>

#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/ps/versions/value_versions.h"

namespace lockstep {

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
  for (StepReplyFrame reply;;) {
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

}  // namespace lockstep
