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

// Time after which a certificate that was replaced is in use at both ends.
constexpr absl::Duration kReplacementLimit = absl::Seconds(3);
// Time for finding out why a connection failed.
constexpr absl::Duration kDiagnosisLimit = absl::Seconds(1);

bool IsConnected(const ChiefConnection::Link& link) { return link.channel->GetState(false) == GRPC_CHANNEL_READY; }

// Returns true if the text of gRPC 1.51 names a cause other than certificates.
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

ChiefConnection::Attempt ChiefConnection::Begin() {
  Attempt attempt;
  attempt.began = absl::Now();
  MutexLock lock(&mutex_);
  attempt.limit = limit_.attempt();
  attempt.fresh = link_ == nullptr || !IsConnected(*link_);
  if (attempt.fresh) link_ = NewLink(limit_.connect());
  attempt.link = link_;
  return attempt;
}

absl::Status ChiefConnection::End(const Attempt& attempt, const absl::Status& status) {
  const absl::Duration took = absl::Now() - attempt.began;
  const bool connected = IsConnected(*attempt.link);
  const bool timed_out = absl::IsDeadlineExceeded(status);
  const bool answered = !timed_out && (connected || !absl::IsUnavailable(status));
  std::shared_ptr<const Link> dropped;  // without the lock
  {
    MutexLock lock(&mutex_);
    if (attempt.fresh) answered ? limit_.OnAnswer(took) : limit_.OnFailure(took);
    if (answered && !absl::IsUnauthenticated(status)) {
      has_answered_ = true;
      refused_since_.reset();
      dropped = std::exchange(link_, attempt.link);
    } else if (link_ == attempt.link) {
      dropped = std::move(link_);
    }
  }
  if (absl::IsUnauthenticated(status)) return RefusedByChief(attempt, status);
  if (attempt.fresh && !answered && !timed_out && !NamesItsCause(status.message()) && !IsUnixAddress(target_)) {
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
  // The connection may have been made with a certificate that has been replaced since.
  const bool may_pass = !attempt.fresh || (has_answered_ && now - *refused_since_ < kReplacementLimit);
  return may_pass ? absl::UnavailableError(status.message()) : WithExitCode(status, kExitBadConfiguration);
}

absl::Status ChiefConnection::RefusedInHandshake(const absl::Status& status) {
  MutexLock lock(&mutex_);
  return has_answered_ ? absl::UnavailableError(status.message()) : WithExitCode(status, kExitBadConfiguration);
}

}  // namespace lockstep
