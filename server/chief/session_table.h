#ifndef LOCKSTEP_SERVER_CHIEF_SESSION_TABLE_H_
#define LOCKSTEP_SERVER_CHIEF_SESSION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/sync/workers/worker_identity.h"

namespace lockstep {

// The sessions of one chief's life: which worker each belongs to, and when it was used last. Pure: the time comes in,
// and the owner, who knows which sessions have a stream, removes those that the table calls idle.
//
//   session    Open            Use         MarkStreamed  Remove
//   unknown    opened          Aborted     Aborted       false
//   opened     the same, used  used        streamed      unknown
//   streamed   the same, used  used        streamed      unknown
//
// Use, UseChecked and MarkStreamed are Aborted in another generation, too, and then change nothing.
class SessionTable {
 public:
  struct Limits {
    size_t max_sessions = 4096;
    // A session that was not used for longer is idle.
    absl::Duration expiry = absl::Seconds(60);
  };
  enum class Outcome {
    kFound,
    kAdded,
    kIdTaken,  // try another id
    kFull,     // remove a session, and try again
  };
  struct Opened {
    Outcome outcome = Outcome::kFull;
    uint64_t id = 0;  // of the worker's session, when there is one
  };

  explicit SessionTable(int64_t generation) : SessionTable(generation, Limits()) {}
  SessionTable(int64_t generation, const Limits& limits) : generation_(generation), limits_(limits) {}

  // The session of a worker's incarnation; a new one, named `fresh_id`, if it has none. No id is 0. The worker has the
  // settings after `changes`.
  Opened Open(const WorkerIdentity& worker, uint64_t incarnation, uint64_t fresh_id, absl::Time now,
              int64_t changes = 0);
  absl::optional<uint64_t> Find(absl::string_view worker, uint64_t incarnation) const;
  // The worker has computed the run's canary. Ignored for an unknown session.
  void MarkChecked(uint64_t id);
  bool IsChecked(uint64_t id) const;
  absl::Status Use(uint64_t id, int64_t generation, absl::Time now);
  // For calls that take part in the run: FailedPrecondition for a session whose worker has not computed the canary.
  absl::Status UseChecked(uint64_t id, int64_t generation, absl::Time now);
  // The session has a stream from now on, or had one.
  absl::Status MarkStreamed(uint64_t id, int64_t generation, absl::Time now);
  bool Remove(uint64_t id);

  // Those that have not been used for `expiry`.
  std::vector<uint64_t> Idle(absl::Time now) const;
  // All, the one that was not used for longest first.
  std::vector<uint64_t> OldestFirst() const;
  // There is a session, and every one has had a stream.
  bool AllHaveStreamed() const;
  // What Open was last told; 0 for an unknown session.
  int64_t ChangesOf(uint64_t id) const;
  // Empty for an unknown session.
  WorkerIdentity WorkerOf(uint64_t id) const;
  size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    WorkerIdentity worker;
    uint64_t incarnation = 0;
    absl::Time last_used;
    int64_t changes = 0;
    bool streamed = false;
    bool checked = false;
  };

  const int64_t generation_;
  const Limits limits_;
  std::map<uint64_t, Session> sessions_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_SESSION_TABLE_H_
