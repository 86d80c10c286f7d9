#include "server/chief/token_queue.h"

#include <algorithm>
#include <map>
#include <utility>

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
  std::fill(copies_.begin(), copies_.end(), 0);
  num_free_ = options_.slots;
  leases_.clear();
  unfinished_.reset();
}

void TokenQueue::CountCopies(const SlotBlock& block, int by) {
  for (int64_t slot = block.first; slot < block.end(); ++slot) {
    num_free_ -= IsFree(slot) ? 1 : 0;
    copies_[slot] += by;
    num_free_ += IsFree(slot) ? 1 : 0;
  }
  unfinished_.reset();
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
  if (num_free_ == 0) return absl::nullopt;
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

const std::vector<TokenQueue::Unfinished>& TokenQueue::unfinished() const {
  if (unfinished_) return *unfinished_;
  unfinished_.emplace();
  std::map<std::pair<int64_t, int64_t>, size_t> places;
  std::vector<absl::Time> newest;
  for (const Lease& lease : leases_) {
    if (IsCovered(lease.block)) continue;
    const auto place = places.emplace(std::make_pair(lease.block.first, lease.block.count), unfinished_->size());
    if (place.second) {
      unfinished_->push_back({lease.block, 0, lease.issued, absl::InfiniteFuture()});
      newest.push_back(lease.issued);
    }
    Unfinished& block = (*unfinished_)[place.first->second];
    ++block.copies;
    block.first_issued = std::min(block.first_issued, lease.issued);
    newest[place.first->second] = std::max(newest[place.first->second], lease.issued);
  }
  if (usual_slot_time_ <= absl::ZeroDuration()) return *unfinished_;
  for (size_t i = 0; i < newest.size(); ++i) {
    Unfinished& block = (*unfinished_)[i];
    block.slow_at = newest[i] + usual_slot_time_ * block.block.count * options_.slow_factor;
  }
  return *unfinished_;
}

bool TokenQueue::AnythingDue(absl::Time now) const {
  return num_free_ > 0 || std::any_of(unfinished().begin(), unfinished().end(), [now](const Unfinished& block) {
           return block.copies < kMaxCopies || now > block.slow_at;
         });
}

absl::optional<SlotBlock> TokenQueue::BackupBlock(int64_t workers, absl::Time now) const {
  const Unfinished* choice = nullptr;
  for (const Unfinished& block : unfinished()) {
    if ((workers <= options_.slots || block.copies >= kMaxCopies) && now <= block.slow_at) continue;
    if (choice == nullptr || block.first_issued < choice->first_issued) choice = &block;
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
  CountCopies(*block, 1);
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
  for (int64_t slot = block.first; slot < block.end(); ++slot) {
    num_free_ -= IsFree(slot) ? 1 : 0;
    covered_[slot] = true;
  }
  unfinished_.reset();
  const Lease* lease = FindLease(session);
  if (lease != nullptr && lease->block == block) {
    const absl::Duration each = (now - lease->issued) / block.count;
    usual_slot_time_ =
        usual_slot_time_ == absl::ZeroDuration() ? each : usual_slot_time_ * (1 - kNewWeight) + each * kNewWeight;
  }
  Release(session);
}

void TokenQueue::Release(uint64_t session) {
  const auto ended = std::stable_partition(leases_.begin(), leases_.end(),
                                           [session](const Lease& lease) { return lease.session != session; });
  for (auto lease = ended; lease != leases_.end(); ++lease) CountCopies(lease->block, -1);
  leases_.erase(ended, leases_.end());
}

std::vector<TokenQueue::Lease> TokenQueue::Expire(absl::Time now) {
  const auto ended =
      std::stable_partition(leases_.begin(), leases_.end(), [now](const Lease& lease) { return lease.deadline > now; });
  std::vector<Lease> expired(ended, leases_.end());
  leases_.erase(ended, leases_.end());
  for (const Lease& lease : expired) CountCopies(lease.block, -1);
  return expired;
}

const TokenQueue::Lease* TokenQueue::FindLease(uint64_t session) const {
  const auto it =
      std::find_if(leases_.begin(), leases_.end(), [session](const Lease& lease) { return lease.session == session; });
  return it == leases_.end() ? nullptr : &*it;
}

}  // namespace lockstep
