#include "lockstep/server/chief/session_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {

absl::optional<uint64_t> SessionTable::Find(absl::string_view worker, uint64_t incarnation) const {
  for (const auto& [id, session] : sessions_) {
    if (session.worker.name == worker && session.incarnation == incarnation) return id;
  }
  return absl::nullopt;
}

SessionTable::Opened SessionTable::Open(const WorkerIdentity& worker, uint64_t incarnation, uint64_t fresh_id,
                                        absl::Time now, int64_t changes, absl::string_view peer) {
  if (const auto id = Find(worker.name, incarnation)) {
    if (!IsOf(*id, peer)) return {Outcome::kOthers, 0};
    sessions_[*id].last_used = now;
    sessions_[*id].changes = changes;
    return {Outcome::kFound, *id};
  }
  if (sessions_.size() >= limits_.max_sessions) return {Outcome::kFull, 0};
  if (fresh_id == 0 || sessions_.count(fresh_id) > 0) return {Outcome::kIdTaken, 0};
  Session& session = sessions_[fresh_id];
  session.worker = worker;
  session.peer = std::string(peer);
  session.incarnation = incarnation;
  session.last_used = now;
  session.changes = changes;
  return {Outcome::kAdded, fresh_id};
}

int64_t SessionTable::ChangesOf(uint64_t id) const {
  const auto session = sessions_.find(id);
  return session == sessions_.end() ? 0 : session->second.changes;
}

void SessionTable::MarkChecked(uint64_t id) {
  const auto session = sessions_.find(id);
  if (session != sessions_.end()) session->second.checked = true;
}

bool SessionTable::IsChecked(uint64_t id) const {
  const auto session = sessions_.find(id);
  return session != sessions_.end() && session->second.checked;
}

bool SessionTable::IsOf(uint64_t id, absl::string_view peer) const {
  const auto session = sessions_.find(id);
  return session != sessions_.end() && session->second.peer == peer;
}

absl::Status SessionTable::Use(uint64_t id, int64_t generation, absl::Time now, absl::string_view peer) {
  const auto session = sessions_.find(id);
  if (generation != generation_ || session == sessions_.end()) {
    return absl::AbortedError(absl::StrCat("session ", id, " of generation ", generation,
                                           " is unknown; the chief's generation is ", generation_));
  }
  if (session->second.peer != peer) {
    return absl::PermissionDeniedError(absl::StrCat("another peer than ", peer, " has opened this session"));
  }
  session->second.last_used = now;
  return absl::OkStatus();
}

absl::Status SessionTable::UseChecked(uint64_t id, int64_t generation, absl::Time now, absl::string_view peer) {
  absl::Status used = Use(id, generation, now, peer);
  if (!used.ok() || IsChecked(id)) return used;
  return absl::FailedPreconditionError("the worker has not computed the canary: OpenSession has no canary_digest");
}

absl::Status SessionTable::MarkStreamed(uint64_t id, int64_t generation, absl::Time now, absl::string_view peer) {
  absl::Status used = Use(id, generation, now, peer);
  if (used.ok()) sessions_[id].streamed = true;
  return used;
}

bool SessionTable::Remove(uint64_t id) { return sessions_.erase(id) > 0; }

std::vector<uint64_t> SessionTable::Idle(absl::Time now) const {
  std::vector<uint64_t> idle;
  for (const auto& [id, session] : sessions_) {
    if (now - session.last_used > limits_.expiry) idle.push_back(id);
  }
  return idle;
}

std::vector<uint64_t> SessionTable::OldestFirst() const {
  std::vector<std::pair<absl::Time, uint64_t>> by_use;
  for (const auto& [id, session] : sessions_) by_use.emplace_back(session.last_used, id);
  std::sort(by_use.begin(), by_use.end());
  std::vector<uint64_t> ids;
  for (const auto& [last_used, id] : by_use) ids.push_back(id);
  return ids;
}

bool SessionTable::AllHaveStreamed() const {
  return !sessions_.empty() &&
         std::all_of(sessions_.begin(), sessions_.end(), [](const auto& entry) { return entry.second.streamed; });
}

WorkerIdentity SessionTable::WorkerOf(uint64_t id) const {
  const auto session = sessions_.find(id);
  return session == sessions_.end() ? WorkerIdentity() : session->second.worker;
}

}  // namespace lockstep
