#include "lockstep/server/sync/delivery/version_pins.h"

#include <algorithm>
#include <iterator>

namespace lockstep {

std::shared_ptr<const void> PinList::Pin(int64_t version, const PinHolder& holder, std::shared_ptr<const void> memory) {
  if (records_.size() >= drop_at_) {
    DropExpired();
    drop_at_ = std::max<size_t>(64, 2 * records_.size());
  }
  // The memory also has other owners, so the pin needs its own reference count.
  const auto owner = std::make_shared<std::shared_ptr<const void>>(std::move(memory));
  std::shared_ptr<const void> pin(owner, owner->get());
  records_.push_back({version + replaced_, holder, pin});
  return pin;
}

void PinList::DropExpired() {
  const auto expired = [](const Record& record) { return record.pin.expired(); };
  records_.erase(std::remove_if(records_.begin(), records_.end(), expired), records_.end());
}

void PinList::FindExcess(int64_t current, PinHolders* excess) {
  if (records_.size() <= max_old_) return;
  DropExpired();
  const int64_t newest = current + replaced_;
  std::set<int64_t> old;
  for (const Record& record : records_) {
    if (record.version < newest) old.insert(record.version);
  }
  if (old.size() <= max_old_) return;
  const int64_t first_kept = max_old_ == 0 ? newest : *std::prev(old.end(), static_cast<std::ptrdiff_t>(max_old_));
  for (const Record& record : records_) {
    if (record.version < first_kept) excess->insert(record.holder);
  }
}

std::vector<PinHolder> VersionPins::FindExcess(int64_t current) {
  PinHolders excess;
  values_.FindExcess(current, &excess);
  constants_.FindExcess(/*current=*/0, &excess);
  return {excess.begin(), excess.end()};
}

}  // namespace lockstep
