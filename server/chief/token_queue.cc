#include "server/chief/token_queue.h"

#include <algorithm>

namespace lockstep {
namespace {

// A block is computed by at most this many workers at once, unless all of them are slow.
constexpr int kMaxCopies = 2;
// The weight of a new measurement in the moving average of a slot's time.
constexpr double kNewWeight = 0.2;

// The largest power of two that is at most n; n >= 1.
int64_t FloorPowerOfTwo(int64_t n) {
  int64_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

}  // namespace

void TokenQueue::StartStep() {
  std::fill(covered_.begin(), covered_.end(), false);
  leases_.clear();
}

bool TokenQueue::IsFree(int64_t slot) const {
  return !covered_[slot] && std::none_of(leases_.begin(), leases_.end(), [slot](const Lease& lease) {
    return lease.block.first <= slot && slot < lease.block.end();
  });
}

bool TokenQueue::IsFree(const SlotBlock& block) const {
  for (int64_t slot = block.first; slot < block.end(); ++slot) {
    if (!IsFree(slot)) return false;
  }
  return true;
}

bool TokenQueue::IsCovered(const SlotBlock& block) const {
  return std::all_of(covered_.begin() + block.first, covered_.begin() + block.end(), [](bool slot) { return slot; });
}

absl::optional<SlotBlock> TokenQueue::FreeBlock(int64_t workers, const absl::optional<SlotBlock>& preferred) const {
  const int64_t share = std::max<int64_t>(1, options_.slots / std::max<int64_t>(1, workers));
  // One worker alone takes everything in one block, even when R is no power of two.
  int64_t size = FloorPowerOfTwo(share);
  if (share == options_.slots && size < options_.slots) size *= 2;
  for (; size >= 1; size /= 2) {
    if (preferred && preferred->count == std::min(size, options_.slots - preferred->first) && IsFree(*preferred)) {
      return preferred;
    }
    for (int64_t first = 0; first < options_.slots; first += size) {
      const SlotBlock block{first, std::min(size, options_.slots - first)};
      if (IsFree(block)) return block;
    }
  }
  return absl::nullopt;
}

absl::optional<SlotBlock> TokenQueue::BackupBlock(int64_t workers, absl::Time now) const {
  const Lease* choice = nullptr;
  for (const Lease& lease : leases_) {
    if (IsCovered(lease.block)) continue;
    int copies = 0;
    absl::Time newest = lease.issued;
    for (const Lease& other : leases_) {
      if (other.block != lease.block) continue;
      ++copies;
      newest = std::max(newest, other.issued);
    }
    const bool slow = usual_slot_time_ > absl::ZeroDuration() &&
                      now - newest > usual_slot_time_ * lease.block.count * options_.slow_factor;
    if ((workers <= options_.slots || copies >= kMaxCopies) && !slow) continue;
    if (choice == nullptr || lease.issued < choice->issued) choice = &lease;
  }
  if (choice == nullptr) return absl::nullopt;
  return choice->block;
}

absl::optional<SlotBlock> TokenQueue::Take(uint64_t session, int64_t workers, absl::Time now,
                                           const absl::optional<SlotBlock>& preferred) {
  absl::optional<SlotBlock> block = FreeBlock(workers, preferred);
  const bool backup = !block.has_value();
  if (backup) block = BackupBlock(workers, now);
  if (!block) return absl::nullopt;
  leases_.push_back({session, *block, now, now + options_.lease, backup});
  return block;
}

bool TokenQueue::Renew(uint64_t session, absl::Time now) {
  for (Lease& lease : leases_) {
    if (lease.session != session) continue;
    lease.deadline = now + options_.lease;
    return true;
  }
  return false;
}

void TokenQueue::Cover(const SlotBlock& block, uint64_t session, absl::Time now) {
  for (int64_t slot = block.first; slot < block.end(); ++slot) covered_[slot] = true;
  const Lease* lease = FindLease(session);
  if (lease != nullptr && lease->block == block) {
    const absl::Duration each = (now - lease->issued) / block.count;
    usual_slot_time_ =
        usual_slot_time_ == absl::ZeroDuration() ? each : usual_slot_time_ * (1 - kNewWeight) + each * kNewWeight;
  }
  Release(session);
}

void TokenQueue::Release(uint64_t session) {
  leases_.erase(std::remove_if(leases_.begin(), leases_.end(),
                               [session](const Lease& lease) { return lease.session == session; }),
                leases_.end());
}

std::vector<TokenQueue::Lease> TokenQueue::Expire(absl::Time now) {
  std::vector<Lease> expired;
  const auto alive = [now](const Lease& lease) { return lease.deadline > now; };
  std::remove_copy_if(leases_.begin(), leases_.end(), std::back_inserter(expired), alive);
  leases_.erase(std::remove_if(leases_.begin(), leases_.end(), [&](const Lease& lease) { return !alive(lease); }),
                leases_.end());
  return expired;
}

const TokenQueue::Lease* TokenQueue::FindLease(uint64_t session) const {
  const auto it =
      std::find_if(leases_.begin(), leases_.end(), [session](const Lease& lease) { return lease.session == session; });
  return it == leases_.end() ? nullptr : &*it;
}

}  // namespace lockstep
