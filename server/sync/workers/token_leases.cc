#include "lockstep/server/sync/workers/token_leases.h"

#include <utility>

namespace lockstep {

void TokenLeases::Give(uint64_t session, const StepToken& token, bool backup, absl::Time now) {
  const TokenLease lease = {session, token, now, now + lease_, backup, absl::nullopt};
  leases_[session] = lease;
  deadlines_.Watch(session, lease.deadline);
}

bool TokenLeases::Renew(uint64_t session, absl::Time now) {
  const auto it = leases_.find(session);
  if (it == leases_.end()) return false;
  it->second.deadline = now + lease_;
  return true;
}

const TokenLease* TokenLeases::Suspend(uint64_t session, absl::Time now) {
  const auto it = leases_.find(session);
  if (it == leases_.end() || it->second.suspended) return nullptr;
  it->second.suspended = now;
  return &it->second;
}

const TokenLease* TokenLeases::Resume(uint64_t session, absl::Time now) {
  const auto it = leases_.find(session);
  if (it == leases_.end() || !it->second.suspended) return nullptr;
  TokenLease& lease = it->second;
  lease.issued += now - *lease.suspended;
  lease.suspended.reset();
  return &lease;
}

absl::optional<TokenLease> TokenLeases::Release(uint64_t session) {
  const auto it = leases_.find(session);
  if (it == leases_.end()) return absl::nullopt;
  TokenLease lease = std::move(it->second);
  leases_.erase(it);
  return lease;
}

absl::optional<TokenLease> TokenLeases::Remove(uint64_t session) {
  deadlines_.Forget(session);
  return Release(session);
}

std::vector<TokenLease> TokenLeases::Expire(absl::Time now) {
  std::vector<TokenLease> expired;
  while (const auto session = deadlines_.PopDue(now)) {
    const TokenLease* const lease = Find(*session);
    if (lease == nullptr) continue;  // the lease was used up
    if (lease->deadline > now) {     // the lease was renewed, or another one has taken its place
      deadlines_.Watch(*session, lease->deadline);
      continue;
    }
    expired.push_back(*Release(*session));
  }
  return expired;
}

const TokenLease* TokenLeases::Find(uint64_t session) const {
  const auto it = leases_.find(session);
  return it == leases_.end() ? nullptr : &it->second;
}

}  // namespace lockstep
