#include "lockstep/common/transport/connection/chief_connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "lockstep/common/transport/connection/channel.h"
#include "lockstep/common/transport/connection/connect_error.h"

namespace lockstep {
namespace {

bool IsConnected(const ChiefConnection::Link& link) { return link.channel->GetState(false) == GRPC_CHANNEL_READY; }

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
    if (answered) {
      dropped = std::exchange(link_, attempt.link);
    } else if (link_ == attempt.link) {
      dropped = std::move(link_);
    }
  }
  if (timed_out) {
    return absl::UnavailableError(connected ? "it did not answer in time"
                                            : absl::StrCat("no connection within ", absl::FormatDuration(attempt.limit),
                                                           ": the host does not answer, or its name service"));
  }
  return attempt.fresh && !answered ? ExplainConnectError(target_, status) : status;
}

}  // namespace lockstep
