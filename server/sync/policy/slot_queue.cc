#include "lockstep/server/sync/policy/slot_queue.h"

#include <algorithm>

namespace lockstep {
namespace {

// The weight of a new measurement in the moving average of a slot's time.
constexpr double kNewWeight = 0.2;
// A measurement counts for at most this many times the average, so that one long pause does not hide a hung worker.
constexpr double kMostNew = 20;

// Returns the largest power of two that is at most n; n >= 1.
int64_t FloorPowerOfTwo(int64_t n) {
  int64_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

}  // namespace

void SlotQueue::StartStep() {
  slots_.Clear();
  unfinished_.Clear();
}

absl::optional<SlotBlock> SlotQueue::FreeBlock(int64_t workers, int64_t most,
                                               const absl::optional<SlotBlock>& preferred) const {
  if (most < 1) return absl::nullopt;
  const int64_t share = ShareOf(workers);
  // A single worker takes everything in one block, even if R is not a power of two.
  int64_t size = FloorPowerOfTwo(share);
  if (share == options_.slots && size < options_.slots) size *= 2;
  if (most < options_.slots) size = std::min(size, FloorPowerOfTwo(most));
  for (; size >= 1; size /= 2) {
    if (preferred && preferred->first % size == 0 &&
        preferred->count == std::min(size, options_.slots - preferred->first) && slots_.IsFree(*preferred)) {
      return preferred;
    }
    const auto block = slots_.FindFree(size);
    if (block) return block;
  }
  return absl::nullopt;
}

bool SlotQueue::AnythingDue(absl::Time now) const { return slots_.AnyFree() || unfinished_.AnyDue(now, slow_after_); }

bool SlotQueue::AnyBackup(bool single, absl::Time now) const {
  return unfinished_.Choose(single, now, slow_after_).has_value();
}

void SlotQueue::Add(const SlotBlock& block, absl::Time now) {
  slots_.CountCopies(block, 1);
  unfinished_.Add(block, now);
}

absl::optional<SlotBlock> SlotQueue::TakeFree(int64_t workers, int64_t most, absl::Time now,
                                              const absl::optional<SlotBlock>& preferred) {
  const absl::optional<SlotBlock> block = FreeBlock(workers, most, preferred);
  if (block) Add(*block, now);
  return block;
}

absl::optional<SlotBlock> SlotQueue::TakeBackup(bool single, absl::Time now) {
  const absl::optional<SlotBlock> block = unfinished_.Choose(single, now, slow_after_);
  if (block) Add(*block, now);
  return block;
}

absl::optional<SlotBlock> SlotQueue::TakeFirst(int64_t workers, absl::Time now) {
  const auto slot = slots_.FirstUncovered();
  if (!slot) return absl::nullopt;
  for (int64_t size = FloorPowerOfTwo(ShareOf(workers)); size >= 1; size /= 2) {
    const SlotBlock block = {*slot, std::min(size, options_.slots - *slot)};
    if (*slot % size != 0 || !slots_.IsFree(block)) continue;
    Add(block, now);
    return block;
  }
  return absl::nullopt;
}

absl::optional<SlotBlock> SlotQueue::TakeFirstCopy(const TokenLeases& leases, absl::Time now) {
  const auto slot = slots_.FirstUncovered();
  if (!slot) return absl::nullopt;
  bool waits = false;
  leases.ForEach([&](const TokenLease& lease) {
    waits = waits || (lease.suspended && lease.token.block.Contains({*slot, 1}));
  });
  if (waits) return absl::nullopt;
  absl::optional<SlotBlock> choice;
  for (int64_t size = 1; size < 2 * options_.slots; size *= 2) {
    const int64_t first = *slot / size * size;
    const SlotBlock block = {first, std::min(size, options_.slots - first)};
    const auto newest = unfinished_.NewestCopy(block);
    if (!newest) continue;
    if (now <= *newest + SlowAfter(block.count)) return absl::nullopt;
    if (!choice) choice = block;
  }
  if (choice) Add(*choice, now);
  return choice;
}

void SlotQueue::Resume(const TokenLease& lease) {
  if (!slots_.IsCovered(lease.token.block)) unfinished_.Add(lease.token.block, lease.issued);
}

void SlotQueue::Cover(const SlotBlock& block, const TokenLease* lease, absl::Time now) {
  slots_.Cover(block);
  unfinished_.OnCovered(block, slots_);
  if (lease == nullptr) return;
  if (lease->token.block == block) {
    timed_ = true;
    double each = absl::ToDoubleSeconds(now - lease->issued) / static_cast<double>(block.count);
    if (usual_slot_seconds_ > 0) each = std::min(each, kMostNew * usual_slot_seconds_);
    usual_slot_seconds_ = usual_slot_seconds_ == 0 ? each : usual_slot_seconds_ * (1 - kNewWeight) + each * kNewWeight;
    if (usual_slot_seconds_ > 0) {
      slow_after_ = {absl::ZeroDuration(), absl::Seconds(usual_slot_seconds_ * options_.slow_factor),
                     absl::Seconds(usual_slot_seconds_)};
    }
  }
  Release(*lease);
}

void SlotQueue::Release(const TokenLease& lease) {
  slots_.CountCopies(lease.token.block, -1);
  if (!lease.suspended) unfinished_.Remove(lease.token.block, lease.issued);
}

}  // namespace lockstep
