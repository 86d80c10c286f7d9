#include "lockstep/server/rpc/visitors.h"

#include <algorithm>
#include <utility>

namespace lockstep {

void Visitors::Enter(std::shared_ptr<Visitor> visitor) {
  std::shared_ptr<Visitor> first;
  {
    MutexLock lock(&mutex_);
    visitors_.push_back(std::move(visitor));
    if (visitors_.size() > most_) {
      first = std::move(visitors_.front());
      visitors_.pop_front();
    }
  }
  if (first != nullptr) first->OnEvicted();
}

void Visitors::Leave(const Visitor* visitor) {
  std::shared_ptr<Visitor> left;  // released without the lock
  MutexLock lock(&mutex_);
  const auto it = std::find_if(visitors_.begin(), visitors_.end(),
                               [visitor](const std::shared_ptr<Visitor>& other) { return other.get() == visitor; });
  if (it == visitors_.end()) return;
  left = std::move(*it);
  visitors_.erase(it);
}

}  // namespace lockstep
