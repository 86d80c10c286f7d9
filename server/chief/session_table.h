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

// The sessions of one incarnation of a chief: the worker of each session, and when it was last used. Pure: the caller
// passes the time. The owner, which knows the sessions' streams, removes idle sessions.
//
//   session    Open            Use         MarkStreamed  Remove
//   unknown    opened          Aborted     Aborted       false
//   opened     the same, used  used        streamed      unknown
//   streamed   the same, used  used        streamed      unknown
//
// Use, UseChecked and MarkStreamed return Aborted for a different generation, and PermissionDenied for a session that
// another peer has opened. In both cases they change nothing.
class SessionTable {
 public:
  struct Limits {
    size_t max_sessions = 4096;
    // A session that has not been used for this long is idle.
    absl::Duration expiry = absl::Seconds(60);
  };
  enum class Outcome {
    kFound,
    kAdded,
    kIdTaken,  // retry with another id
    kFull,     // remove a session and retry
    kOthers,   // another peer has opened the session of this incarnation
  };
  struct Opened {
    Outcome outcome = Outcome::kFull;
    uint64_t id = 0;  // the worker's session; 0 for none
  };

  explicit SessionTable(int64_t generation) : SessionTable(generation, Limits()) {}
  SessionTable(int64_t generation, const Limits& limits) : generation_(generation), limits_(limits) {}

  // Opens the session of a worker's incarnation: the existing one, or a new one with id `fresh_id`. 0 is never an id.
  // The worker has the settings after `changes` changes. `peer` is the identity that the worker has proved; it is empty
  // if no proof is required.
  Opened Open(const WorkerIdentity& worker, uint64_t incarnation, uint64_t fresh_id, absl::Time now,
              int64_t changes = 0, absl::string_view peer = "");
  absl::optional<uint64_t> Find(absl::string_view worker, uint64_t incarnation) const;
  // Records that the worker has computed the run's canary. Ignored for an unknown session.
  void MarkChecked(uint64_t id);
  bool IsChecked(uint64_t id) const;
  absl::Status Use(uint64_t id, int64_t generation, absl::Time now, absl::string_view peer = "");
  // Like Use, for calls that take part in the run. Returns FailedPrecondition if the session's worker has not computed
  // the canary.
  absl::Status UseChecked(uint64_t id, int64_t generation, absl::Time now, absl::string_view peer = "");
  // Records that the session has, or had, a stream.
  absl::Status MarkStreamed(uint64_t id, int64_t generation, absl::Time now, absl::string_view peer = "");
  bool Remove(uint64_t id);

  // Returns the sessions that have not been used for `expiry`.
  std::vector<uint64_t> Idle(absl::Time now) const;
  // Returns all sessions, ordered by last use, oldest first.
  std::vector<uint64_t> OldestFirst() const;
  // Returns true if there is a session, and every session has had a stream.
  bool AllHaveStreamed() const;
  // Returns the last `changes` passed to Open; 0 for an unknown session.
  int64_t ChangesOf(uint64_t id) const;
  // Returns true if `peer` opened the session.
  bool IsOf(uint64_t id, absl::string_view peer) const;
  // Returns an empty identity for an unknown session.
  WorkerIdentity WorkerOf(uint64_t id) const;
  size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    WorkerIdentity worker;
    std::string peer;
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
