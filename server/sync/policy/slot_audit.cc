#include "lockstep/server/sync/policy/slot_audit.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {

namespace {

// Returns true for the first few mismatches, then less and less often, so that a faulty host does not fill the disk.
bool IsLogged(int64_t differences) {
  constexpr int64_t kAllLogged = 16;
  return differences <= kAllLogged || absl::has_single_bit(static_cast<uint64_t>(differences));
}

}  // namespace

bool SlotAudit::Slot::Knows(uint64_t session) const {
  return computing.count(session) > 0 ||
         std::any_of(copies.begin(), copies.end(), [session](const Copy& copy) { return copy.session == session; });
}

SlotAudit::SlotAudit(Options options, int64_t step) : options_(std::move(options)), step_(step) { Draw(); }

void SlotAudit::Draw() {
  slots_.clear();
  if (!options_.enabled || options_.fraction <= 0) return;
  for (int64_t slot = 0; slot < options_.slots; ++slot) {
    const Philox philox = Philox::ForSlot(options_.seed, "audit", step_, slot);
    if (static_cast<double>(Philox::ToUniform(philox.At(0)[0])) < options_.fraction) slots_.push_back(slot);
  }
}

bool SlotAudit::Audits(int64_t slot) const { return std::binary_search(slots_.begin(), slots_.end(), slot); }

void SlotAudit::OnLeased(int64_t slot, uint64_t session) { present_[slot].computing.insert(session); }

void SlotAudit::OnReleased(uint64_t session) {
  for (auto& [slot, copies] : present_) copies.computing.erase(session);
}

std::string SlotAudit::Difference(int64_t step, int64_t slot, const Slot& copies) const {
  const Copy &first = copies.copies.front(), &newest = copies.copies.back();
  std::string variable;
  int others = -1;
  for (size_t i = 0; i < options_.variables.size(); ++i) {
    if (first.digests[i] == newest.digests[i]) continue;
    if (++others == 0) variable = options_.variables[i];
  }
  if (others < 0) return "";
  return absl::StrCat("step ", step, ", slot ", slot, ": the gradient of ", variable,
                      others > 0 ? absl::StrCat(", and those of ", others, " more variables,") : "", " by ",
                      newest.worker, " differs from that by ", first.worker);
}

std::string SlotAudit::Verdict(const std::vector<Copy>& copies) {
  for (size_t i = 0; i < 3; ++i) {
    const Copy &a = copies[(i + 1) % 3], &b = copies[(i + 2) % 3];
    if (a.digests != b.digests) continue;
    return absl::StrCat("; ", copies[i].worker, " is outvoted by ", std::min(a.worker, b.worker), " and ",
                        std::max(a.worker, b.worker));
  }
  return absl::StrCat("; so does that by ", copies[2].worker, " from both");
}

SlotAudit::Outcome SlotAudit::OnCopy(int64_t step, int64_t slot, Copy copy) {
  Outcome outcome;
  if (!options_.enabled || step < step_ - 1) return outcome;
  if (copy.digests.size() != options_.variables.size()) {
    outcome.status = absl::InvalidArgumentError(absl::StrCat(
        "a contribution with ", copy.digests.size(), " digests; its token asks for ", options_.variables.size()));
    return outcome;
  }
  if (step == step_) waiting_since_.reset();
  Slot& copies = (step == step_ ? present_ : previous_)[slot];
  copies.computing.erase(copy.session);
  if (copies.Knows(copy.session) || copies.copies.size() == 3) return outcome;
  copies.copies.push_back(std::move(copy));
  if (copies.copies.size() < 2) return outcome;
  status_.set_compared(status_.compared() + 1);
  std::string difference = Difference(step, slot, copies);
  if (!difference.empty()) status_.set_differences(status_.differences() + 1);
  if (difference.empty()) difference = copies.difference;
  if (difference.empty()) return outcome;
  const bool decided = copies.copies.size() == 3;
  if (decided) {
    // When there are three copies, the first two can match only if the slot is not audited.
    difference = absl::StrCat(copies.difference.empty() ? difference : copies.difference, Verdict(copies.copies));
  }
  copies.difference = difference;
  status_.set_last_difference(difference);
  if (IsLogged(status_.differences())) outcome.warnings.push_back(difference);
  if (options_.fails && (decided || step < step_)) outcome.failure = absl::DataLossError(difference);
  return outcome;
}

bool SlotAudit::Lacks(int64_t slot, const Slot& copies, int64_t workers) const {
  const size_t there = copies.copies.size() + copies.computing.size();
  return there > 0 && there < copies.wanted() && static_cast<int64_t>(there) < workers && Audits(slot);
}

absl::optional<int64_t> SlotAudit::Choose(uint64_t session, int64_t workers) const {
  for (const auto& [slot, copies] : present_) {
    if (Lacks(slot, copies, workers) && !copies.Knows(session)) return slot;
  }
  return absl::nullopt;
}

bool SlotAudit::Lacks(int64_t workers) const {
  return std::any_of(present_.begin(), present_.end(),
                     [&](const auto& entry) { return Lacks(entry.first, entry.second, workers); });
}

bool SlotAudit::disputed() const {
  return std::any_of(present_.begin(), present_.end(), [](const auto& entry) {
    return !entry.second.difference.empty() && entry.second.copies.size() < 3;
  });
}

bool SlotAudit::Waits(int64_t workers, absl::Duration patience, absl::Time now) {
  const bool waits = std::any_of(present_.begin(), present_.end(), [&](const auto& entry) {
    const Slot& copies = entry.second;
    if (!Audits(entry.first) || copies.copies.size() >= copies.wanted()) return false;
    return !copies.computing.empty() || Lacks(entry.first, copies, workers);
  });
  if (!waits) return false;
  if (!waiting_since_) waiting_since_ = now;
  return now < *waiting_since_ + patience;
}

absl::Status SlotAudit::CheckCommit() const {
  if (!options_.fails) return absl::OkStatus();
  for (const auto& [slot, copies] : present_) {
    if (!copies.difference.empty()) return absl::DataLossError(copies.difference);
  }
  return absl::OkStatus();
}

void SlotAudit::StartStep(int64_t step) {
  for (const int64_t slot : slots_) {
    const auto it = present_.find(slot);
    if (it == present_.end()) {
      status_.set_missed(status_.missed() + 1);
    } else if (it->second.copies.size() < 2) {
      status_.set_abandoned(status_.abandoned() + 1);
    }
  }
  step_ = step;
  previous_ = std::exchange(present_, {});
  waiting_since_.reset();
  Draw();
}

void SlotAudit::RestartStep() {
  present_.clear();
  waiting_since_.reset();
}

void SlotAudit::FillStatus(v1::AuditStatus* status) const { *status = status_; }

}  // namespace lockstep
