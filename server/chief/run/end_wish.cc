#include "lockstep/server/chief/run/end_wish.h"

#include "lockstep/server/chief/checkpoint/save_schedule.h"

namespace lockstep {
namespace {

Backoff::Options RetryDelays() {
  Backoff::Options delays;
  delays.max = absl::Seconds(2);
  return delays;
}

}  // namespace

EndWish::EndWish(uint64_t seed) : delays_(RetryDelays(), seed) {}

void EndWish::Want(const std::string& reason) {
  if (wanted()) return;
  reason_ = reason;
  due_ = absl::InfinitePast();
  delays_.Reset();
}

bool EndWish::OnTried(const absl::Status& status, absl::Time now) {
  if (MayPass(status)) {
    due_ = now + delays_.Next();
    return true;
  }
  reason_.clear();
  return false;
}

}  // namespace lockstep
