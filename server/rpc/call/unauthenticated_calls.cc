#include "lockstep/server/rpc/call/unauthenticated_calls.h"

#include <iterator>
#include <utility>

namespace lockstep {

void UnauthenticatedCalls::Enter(std::shared_ptr<EvictableCall> call) {
  {
    MutexLock lock(&mutex_);
    const EvictableCall* const key = call.get();
    calls_.push_back({std::move(call), options_.clock->Now()});
    places_[key] = std::prev(calls_.end());
  }
  EvictExcess();
}

void UnauthenticatedCalls::Leave(const EvictableCall* call) {
  std::shared_ptr<EvictableCall> left;  // released without the lock
  MutexLock lock(&mutex_);
  const auto place = places_.find(call);
  if (place == places_.end()) return;
  left = std::move(place->second->call);
  calls_.erase(place->second);
  places_.erase(place);
}

void UnauthenticatedCalls::EvictExcess() {
  Entries evicted;  // ended and released without the lock
  {
    MutexLock lock(&mutex_);
    const absl::Time too_old = options_.clock->Now() - options_.patience;
    while (calls_.size() > options_.most_young ||
           (calls_.size() > options_.most && calls_.front().entered <= too_old)) {
      places_.erase(calls_.front().call.get());
      evicted.splice(evicted.end(), calls_, calls_.begin());
    }
    num_evicted_ += static_cast<int64_t>(evicted.size());
  }
  for (const Entry& entry : evicted) entry.call->OnEvicted();
}

}  // namespace lockstep
