#include "lockstep/server/sync/delivery/version_pins.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep {

std::shared_ptr<const void> VersionPins::Pin(int64_t version, uint64_t session, std::shared_ptr<const void> memory) {
  if (records_.size() >= drop_at_) {
    DropExpired();
    drop_at_ = std::max<size_t>(64, 2 * records_.size());
  }
  // Others own the memory, too: the pin has a count of its own.
  const auto owner = std::make_shared<std::shared_ptr<const void>>(std::move(memory));
  std::shared_ptr<const void> pin(owner, owner->get());
  records_.push_back({version, session, pin});
  return pin;
}

void VersionPins::DropExpired() {
  const auto expired = [](const Record& record) { return record.pin.expired(); };
  records_.erase(std::remove_if(records_.begin(), records_.end(), expired), records_.end());
}

void VersionPins::Forget(uint64_t session) {
  const auto forgotten = [session](const Record& record) { return record.session == session; };
  records_.erase(std::remove_if(records_.begin(), records_.end(), forgotten), records_.end());
}

std::set<uint64_t> VersionPins::FindExcess(int64_t current) {
  DropExpired();
  std::set<int64_t> old;
  for (const Record& record : records_) {
    if (record.version < current) old.insert(record.version);
  }
  std::set<uint64_t> sessions;
  if (old.size() <= max_old_) return sessions;
  const int64_t first_kept = max_old_ == 0 ? current : *std::prev(old.end(), static_cast<std::ptrdiff_t>(max_old_));
  for (const Record& record : records_) {
    if (record.version < first_kept) sessions.insert(record.session);
  }
  return sessions;
}

}  // namespace lockstep
