#include "lockstep/common/transport/connection/chief_connection.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/tls_diagnosis.h"
#include "lockstep/common/transport/connection/channel.h"
#include "lockstep/common/transport/connection/connect_error.h"

namespace lockstep {
namespace {

// Time after which both ends use a renewed certificate.
constexpr absl::Duration kReplacementLimit = absl::Seconds(3);
// Maximum time spent on finding out why a connection failed.
constexpr absl::Duration kDiagnosisLimit = absl::Seconds(1);

bool IsConnected(const ChiefConnection::Link& link) { return link.channel->GetState(false) == GRPC_CHANNEL_READY; }

// Returns true if an error message from gRPC 1.51 names a cause other than certificates.
bool NamesItsCause(absl::string_view text) {
  return absl::StrContains(text, "Connection refused") || absl::StrContains(text, "DNS resolution failed");
}

}  // namespace

ChiefConnection::ChiefConnection(std::string target, const Options& options)
    : target_(std::move(target)), options_(options), limit_(options.first_limit, options.most) {}

std::shared_ptr<const ChiefConnection::Link> ChiefConnection::NewLink(absl::Duration connect_limit) const {
  auto link = std::make_shared<Link>();
  link->channel = NewChannel(target_, options_.credentials, connect_limit);
  link->stub = v1::ChiefService::NewStub(link->channel);
  return link;
}

std::shared_ptr<const ChiefConnection::Link> ChiefConnection::link() {
  MutexLock lock(&mutex_);
  if (link_ == nullptr) link_ = NewLink(limit_.connect());
  return link_;
}

std::shared_ptr<const ChiefConnection::Link> ChiefConnection::StartPatientLink(absl::Time now) {
  if (patient_ != nullptr) {
    const absl::Duration age = now - patient_since_;
    const bool has_failed = patient_->channel->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE;
    if (!has_failed && age < limit_.attempt()) return nullptr;
    limit_.OnFailure(age);
  }
  std::shared_ptr<const Link> replaced = std::exchange(patient_, NewLink(limit_.connect()));
  patient_since_ = now;
  patient_->channel->GetState(/*try_to_connect=*/true);
  return replaced;
}

ChiefConnection::Attempt ChiefConnection::Begin() {
  Attempt attempt;
  attempt.began = absl::Now();
  std::shared_ptr<const Link> replaced;  // without the lock
  MutexLock lock(&mutex_);
  attempt.fresh = link_ == nullptr || !IsConnected(*link_);
  if (attempt.fresh && patient_ != nullptr && IsConnected(*patient_)) {
    link_ = std::exchange(patient_, nullptr);
    attempt.began = patient_since_;
  } else if (attempt.fresh && limit_.has_grown()) {
    attempt.is_short = true;
    replaced = StartPatientLink(attempt.began);
    link_ = NewLink(options_.first_limit / 4);
  } else if (attempt.fresh) {
    link_ = NewLink(limit_.connect());
  }
  attempt.limit = attempt.is_short ? options_.first_limit / 2 : limit_.attempt();
  attempt.link = link_;
  return attempt;
}

absl::Status ChiefConnection::End(const Attempt& attempt, const absl::Status& status) {
  const absl::Duration took = absl::Now() - attempt.began;
  const bool connected = IsConnected(*attempt.link);
  const bool timed_out = absl::IsDeadlineExceeded(status);
  const bool answered = !timed_out && (connected || !absl::IsUnavailable(status));
  // A host that does not answer cannot have refused a certificate.
  const bool is_silent = attempt.is_short && took >= attempt.limit / 2;
  std::shared_ptr<const Link> dropped, patient;  // without the lock
  {
    MutexLock lock(&mutex_);
    if (attempt.fresh) answered ? limit_.OnAnswer(took) : limit_.OnFailure(took);
    if (answered && !absl::IsUnauthenticated(status)) {
      has_answered_ = true;
      refused_since_.reset();
      dropped = std::exchange(link_, attempt.link);
      patient = std::exchange(patient_, nullptr);
    } else if (link_ == attempt.link) {
      dropped = std::move(link_);
    }
  }
  if (absl::IsUnauthenticated(status)) return RefusedByChief(attempt, status);
  if (attempt.fresh && !answered && !timed_out && !is_silent && !NamesItsCause(status.message()) &&
      !IsUnixAddress(target_)) {
    const absl::Status diagnosed =
        DiagnoseTls(target_, options_.credentials.directory(), FileSystem::Real(), kDiagnosisLimit);
    if (!diagnosed.ok()) return RefusedInHandshake(diagnosed);
  }
  if (timed_out) {
    return absl::UnavailableError(connected ? "it did not answer in time"
                                            : absl::StrCat("no connection within ", absl::FormatDuration(attempt.limit),
                                                           ": the host does not answer, or its name service"));
  }
  const bool never_answered = attempt.fresh && !answered;
  return never_answered || absl::IsUnimplemented(status) ? ExplainConnectError(target_, status) : status;
}

absl::Status ChiefConnection::RefusedByChief(const Attempt& attempt, const absl::Status& status) {
  MutexLock lock(&mutex_);
  const absl::Time now = absl::Now();
  if (!refused_since_) refused_since_ = now;
  // The connection may use a certificate that has been replaced since.
  const bool may_pass = !attempt.fresh || (has_answered_ && now - *refused_since_ < kReplacementLimit);
  return may_pass ? absl::UnavailableError(status.message()) : WithExitCode(status, kExitBadConfiguration);
}

absl::Status ChiefConnection::RefusedInHandshake(const absl::Status& status) {
  MutexLock lock(&mutex_);
  return has_answered_ ? absl::UnavailableError(status.message()) : WithExitCode(status, kExitBadConfiguration);
}

}  // namespace lockstep
