#include "lockstep/tests/simulation/staleness_watch.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace simulation {
namespace {

// Time that the chief may take to report why a worker no longer counts and to end its stream. Simulated time does not
// advance while the chief can run.
constexpr absl::Duration kSayLimit = absl::Milliseconds(1);

bool IsOver(const Call& call) { return call.status || call.broken || call.server == nullptr; }

}  // namespace

void StalenessWatch::OnFrame(const std::shared_ptr<Call>& stream, const StepFrame& frame) {
  if (frame.leave || frame.end_of_input) {
    workers_.erase(stream);
  } else if (frame.end && frame.block.count > 0) {
    ++workers_[stream].sent;
  }
}

void StalenessWatch::OnReply(const std::shared_ptr<Call>& stream, const StepReplyFrame& reply, Instant now) {
  Worker& worker = workers_[stream];
  if (reply.result == v1::CONTRIBUTION_ACCEPTED) ++worker.accepted;
  if (!reply.token) return;
  if (worker.joined == 0) {
    worker.joined = ++joins_;
    // After Forget, the reply may be to a contribution that was sent before. The watch no longer counts it as sent, so
    // it must not count it as accepted either.
    worker.accepted = 0;
    for (const auto& [other, its] : workers_) {
      if (other != stream) worker.before[other.get()] = its.sent;
    }
    return;
  }
  for (const auto& [other, its] : workers_) {
    const auto before = its.before.find(stream.get());
    if (its.joined < worker.joined || before == its.before.end() || IsOver(*other)) continue;
    const int64_t ahead = worker.accepted - before->second - its.sent;
    if (ahead > max_staleness_) suspicions_.push_back({other, ahead, now});
  }
}

void StalenessWatch::Forget() {
  workers_.clear();
  suspicions_.clear();
}

std::string StalenessWatch::Check(Instant now) {
  for (auto it = workers_.begin(); it != workers_.end();) it = IsOver(*it->first) ? workers_.erase(it) : std::next(it);
  for (const Suspicion& suspicion : suspicions_) {
    if (absl::Nanoseconds(now - suspicion.since) < kSayLimit) continue;
    const auto behind = suspicion.behind.lock();
    if (behind == nullptr || IsOver(*behind)) continue;
    return absl::StrCat("a worker got a token when it was ", suspicion.ahead,
                        " contributions ahead of another one, and max_staleness is ", max_staleness_);
  }
  suspicions_.erase(
      std::remove_if(suspicions_.begin(), suspicions_.end(),
                     [&](const Suspicion& suspicion) { return absl::Nanoseconds(now - suspicion.since) >= kSayLimit; }),
      suspicions_.end());
  return "";
}

}  // namespace simulation
}  // namespace lockstep
