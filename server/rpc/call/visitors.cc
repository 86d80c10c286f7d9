#include "lockstep/server/rpc/call/visitors.h"

#include <iterator>
#include <utility>

namespace lockstep {

void Visitors::Enter(std::shared_ptr<Visitor> visitor) {
  {
    MutexLock lock(&mutex_);
    const Visitor* const key = visitor.get();
    visitors_.push_back({std::move(visitor), options_.clock->Now()});
    places_[key] = std::prev(visitors_.end());
  }
  EvictExcess();
}

void Visitors::Leave(const Visitor* visitor) {
  std::shared_ptr<Visitor> left;  // released without the lock
  MutexLock lock(&mutex_);
  const auto place = places_.find(visitor);
  if (place == places_.end()) return;
  left = std::move(place->second->visitor);
  visitors_.erase(place->second);
  places_.erase(place);
}

void Visitors::EvictExcess() {
  Entries evicted;  // ended and released without the lock
  {
    MutexLock lock(&mutex_);
    const absl::Time too_old = options_.clock->Now() - options_.patience;
    while (visitors_.size() > options_.most_young ||
           (visitors_.size() > options_.most && visitors_.front().entered <= too_old)) {
      places_.erase(visitors_.front().visitor.get());
      evicted.splice(evicted.end(), visitors_, visitors_.begin());
    }
  }
  for (const Entry& entry : evicted) entry.visitor->OnEvicted();
}

}  // namespace lockstep
