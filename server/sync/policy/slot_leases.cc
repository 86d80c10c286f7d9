#include "lockstep/server/sync/policy/slot_leases.h"

#include <algorithm>

namespace lockstep {
namespace {

// The weight of a new measurement in the moving average of a slot's time.
constexpr double kNewWeight = 0.2;
// A measurement counts for at most this many times the average: one long pause does not hide a worker that hangs.
constexpr double kMostNew = 20;

// The largest power of two that is at most n; n >= 1.
int64_t FloorPowerOfTwo(int64_t n) {
  int64_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

}  // namespace

void SlotLeases::StartStep() {
  slots_.Clear();
  leases_.clear();
  unfinished_.Clear();
}

absl::optional<SlotBlock> SlotLeases::FreeBlock(int64_t workers, int64_t most,
                                                const absl::optional<SlotBlock>& preferred) const {
  if (most < 1) return absl::nullopt;
  const int64_t share = ShareOf(workers);
  // One worker alone takes everything in one block, even when R is no power of two.
  int64_t size = FloorPowerOfTwo(share);
  if (share == options_.slots && size < options_.slots) size *= 2;
  if (most < options_.slots) size = std::min(size, FloorPowerOfTwo(most));
  for (; size >= 1; size /= 2) {
    if (preferred && preferred->count == std::min(size, options_.slots - preferred->first) &&
        slots_.IsFree(*preferred)) {
      return preferred;
    }
    const auto block = slots_.FindFree(size);
    if (block) return block;
  }
  return absl::nullopt;
}

bool SlotLeases::AnythingDue(absl::Time now) const { return slots_.AnyFree() || unfinished_.AnyDue(now, slow_after_); }

bool SlotLeases::AnyBackup(bool single, absl::Time now) const {
  return unfinished_.Choose(single, now, slow_after_).has_value();
}

void SlotLeases::Add(uint64_t session, const SlotBlock& block, absl::Time now, bool backup) {
  const Lease lease = {session, block, now, now + options_.lease, backup, absl::nullopt};
  leases_[session] = lease;
  deadlines_.Watch(session, lease.deadline);
  slots_.CountCopies(block, 1);
  unfinished_.Add(block, now);
}

absl::optional<SlotBlock> SlotLeases::TakeFree(uint64_t session, int64_t workers, int64_t most, absl::Time now,
                                               const absl::optional<SlotBlock>& preferred) {
  const absl::optional<SlotBlock> block = FreeBlock(workers, most, preferred);
  if (block) Add(session, *block, now, /*backup=*/false);
  return block;
}

absl::optional<SlotBlock> SlotLeases::TakeBackup(uint64_t session, bool single, absl::Time now) {
  const absl::optional<SlotBlock> block = unfinished_.Choose(single, now, slow_after_);
  if (block) TakeCopy(session, *block, now);
  return block;
}

absl::optional<SlotBlock> SlotLeases::TakeFirst(uint64_t session, int64_t workers, absl::Time now) {
  const auto slot = slots_.FirstUncovered();
  if (!slot) return absl::nullopt;
  for (int64_t size = FloorPowerOfTwo(ShareOf(workers)); size >= 1; size /= 2) {
    const SlotBlock block = {*slot, std::min(size, options_.slots - *slot)};
    if (*slot % size != 0 || !slots_.IsFree(block)) continue;
    Add(session, block, now, /*backup=*/false);
    return block;
  }
  // The smallest of those that are computed.
  absl::optional<SlotBlock> choice;
  for (const auto& [holder, lease] : leases_) {
    if (!lease.block.Contains({*slot, 1})) continue;
    if (lease.suspended || !IsSlow(lease, now)) return absl::nullopt;
    if (!choice || lease.block.count < choice->count) choice = lease.block;
  }
  if (choice) TakeCopy(session, *choice, now);
  return choice;
}

void SlotLeases::TakeCopy(uint64_t session, const SlotBlock& block, absl::Time now) {
  Add(session, block, now, /*backup=*/true);
}

absl::optional<SlotBlock> SlotLeases::Take(uint64_t session, int64_t workers, absl::Time now,
                                           const absl::optional<SlotBlock>& preferred) {
  const absl::optional<SlotBlock> block = TakeFree(session, workers, options_.slots, now, preferred);
  return block ? block : TakeBackup(session, /*single=*/workers > options_.slots, now);
}

bool SlotLeases::Renew(uint64_t session, absl::Time now) {
  const auto it = leases_.find(session);
  if (it == leases_.end()) return false;
  it->second.deadline = now + options_.lease;
  return true;
}

void SlotLeases::Suspend(uint64_t session, absl::Time now) {
  const auto it = leases_.find(session);
  if (it == leases_.end() || it->second.suspended) return;
  it->second.suspended = now;
  unfinished_.Remove(it->second.block, it->second.issued);
}

void SlotLeases::Resume(uint64_t session, absl::Time now) {
  const auto it = leases_.find(session);
  if (it == leases_.end() || !it->second.suspended) return;
  Lease& lease = it->second;
  lease.issued += now - *lease.suspended;
  lease.suspended.reset();
  if (!slots_.IsCovered(lease.block)) unfinished_.Add(lease.block, lease.issued);
}

bool SlotLeases::AnyInTime(absl::Time now) const {
  return std::any_of(leases_.begin(), leases_.end(),
                     [this, now](const auto& entry) { return !entry.second.suspended && !IsSlow(entry.second, now); });
}

void SlotLeases::Cover(const SlotBlock& block, uint64_t session, absl::Time now) {
  slots_.Cover(block);
  unfinished_.OnCovered(block, slots_);
  const Lease* lease = FindLease(session);
  if (lease != nullptr && lease->block == block) {
    double each = absl::ToDoubleSeconds(now - lease->issued) / static_cast<double>(block.count);
    if (usual_slot_seconds_ > 0) each = std::min(each, kMostNew * usual_slot_seconds_);
    usual_slot_seconds_ = usual_slot_seconds_ == 0 ? each : usual_slot_seconds_ * (1 - kNewWeight) + each * kNewWeight;
    if (usual_slot_seconds_ > 0) {
      slow_after_ = {absl::ZeroDuration(), absl::Seconds(usual_slot_seconds_ * options_.slow_factor),
                     absl::Seconds(usual_slot_seconds_)};
    }
  }
  Release(session);
}

void SlotLeases::Release(uint64_t session) {
  const auto it = leases_.find(session);
  if (it == leases_.end()) return;
  slots_.CountCopies(it->second.block, -1);
  if (!it->second.suspended) unfinished_.Remove(it->second.block, it->second.issued);
  leases_.erase(it);
}

void SlotLeases::Remove(uint64_t session) {
  Release(session);
  deadlines_.Forget(session);
}

std::vector<SlotLeases::Lease> SlotLeases::Expire(absl::Time now) {
  std::vector<Lease> expired;
  while (const auto session = deadlines_.PopDue(now)) {
    const Lease* const lease = FindLease(*session);
    if (lease == nullptr) continue;  // it was used up
    if (lease->deadline > now) {     // it was renewed, or another has taken its place
      deadlines_.Watch(*session, lease->deadline);
      continue;
    }
    expired.push_back(*lease);
    Release(*session);
  }
  return expired;
}

const SlotLeases::Lease* SlotLeases::FindLease(uint64_t session) const {
  const auto it = leases_.find(session);
  return it == leases_.end() ? nullptr : &it->second;
}

}  // namespace lockstep
