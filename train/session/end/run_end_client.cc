#include "lockstep/train/session/end/run_end_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/cluster/end_of_run.h"

namespace lockstep::train {

bool RecordSaysFinished(FileSystem* fs, const std::string& logdir) {
  const auto record = ReadRunRecord(fs, logdir);
  return record.ok() && *record && (*record)->finished();
}

RunEndClient::RunEndClient(Options options, std::unique_ptr<ChiefClient> chief)
    : options_(std::move(options)), chief_(std::move(chief)) {}

bool RunEndClient::MayBelieve() {
  const absl::Time now = options_.clock->Now();
  MutexLock lock(&mutex_);
  if (!absent_since_) absent_since_ = now;
  return had_session_ || now - *absent_since_ >= kGrace;
}

absl::StatusOr<v1::GetRunSpecReply> RunEndClient::GetRunSpec() {
  absl::StatusOr<v1::GetRunSpecReply> reply = chief_->GetRunSpec();
  if (!absl::IsUnavailable(reply.status()) && !absl::IsDeadlineExceeded(reply.status())) {
    MutexLock lock(&mutex_);
    absent_since_.reset();
    return reply;
  }
  if (!MayBelieve()) return reply;
  if (!RecordSaysFinished(options_.fs, options_.logdir)) return reply;
  return EndOfRun(absl::StatusCode::kOutOfRange, absl::StrCat("the run is over, says its record in ", options_.logdir));
}

absl::StatusOr<v1::OpenSessionReply> RunEndClient::OpenSession(const v1::OpenSessionRequest& request) {
  absl::StatusOr<v1::OpenSessionReply> reply = chief_->OpenSession(request);
  if (reply.ok()) {
    MutexLock lock(&mutex_);
    had_session_ = true;
  }
  return reply;
}

}  // namespace lockstep::train
