#include "lockstep/server/chief/run/finish_request.h"

#include "lockstep/server/chief/checkpoint/save_schedule.h"

namespace lockstep {

FinishRequest::FinishRequest(uint64_t seed) : delays_(RetryDelays(), seed) {}

void FinishRequest::Set(const std::string& reason) {
  if (pending()) return;
  reason_ = reason;
  due_ = absl::InfinitePast();
  delays_.Reset();
}

bool FinishRequest::OnTried(const absl::Status& status, absl::Time now) {
  if (MayPass(status)) {
    due_ = now + delays_.Next();
    return true;
  }
  reason_.clear();
  return false;
}

}  // namespace lockstep
