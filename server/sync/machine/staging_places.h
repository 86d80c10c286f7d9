#ifndef LOCKSTEP_SERVER_SYNC_MACHINE_STAGING_PLACES_H_
#define LOCKSTEP_SERVER_SYNC_MACHINE_STAGING_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace lockstep {

// Decides which contributions may be staged now, so that the chief holds no more of them than it has places. A
// contribution takes a place when its first gradients arrive, and keeps it until it ends. The others wait in line,
// oldest first, and nothing is read from their workers. A contribution that makes no progress while others wait loses
// its place: it is dropped, and its worker recomputes the batch. Pure; not thread-safe.
class StagingPlaces {
 public:
  enum class Verdict { kStage, kDrop, kWait };

  // `places` must be at least 1.
  explicit StagingPlaces(int64_t places) : places_(places) {}

  // Returns the verdict on the session's contribution when a frame of it has arrived or is passed again. A verdict of
  // kStage does not change until End or TakeBack, and kDrop does not change until End.
  Verdict Ask(uint64_t session, absl::Time now);
  // Ends the contribution, because it counts, is unwanted, or has lost its worker. Ignored if Ask was not called for
  // it.
  void End(uint64_t session);
  // Gives free places to waiting sessions and returns these sessions.
  std::vector<uint64_t> Admit(absl::Time now);
  // Takes places away from contributions that have received no frame since `since`, longest idle first, but from no
  // more of them than there are waiting sessions. Returns their sessions, whose verdict is then kDrop.
  std::vector<uint64_t> TakeBack(absl::Time since);
  // Drops the contribution, which must be waiting.
  void Drop(uint64_t session);
  // Restarts the idle time of all contributions, because workers could not send while the run was held.
  void Touch(absl::Time now);
  // Removes all contributions. Returns the sessions that were waiting.
  std::vector<uint64_t> Clear();

  bool waits(uint64_t session) const { return HasVerdict(session, Verdict::kWait); }
  bool stages(uint64_t session) const { return HasVerdict(session, Verdict::kStage); }
  // True if the remaining frames of the session's contribution must be dropped.
  bool drops(uint64_t session) const { return HasVerdict(session, Verdict::kDrop); }
  const std::deque<uint64_t>& line() const { return line_; }

 private:
  struct Contribution {
    Verdict verdict = Verdict::kWait;
    absl::Time last;  // the time of its last frame, if it is staged
  };

  bool HasVerdict(uint64_t session, Verdict verdict) const;
  void LeaveLine(uint64_t session);

  const int64_t places_;
  int64_t taken_ = 0;
  absl::flat_hash_map<uint64_t, Contribution> contributions_;  // by session
  std::deque<uint64_t> line_;                                  // waiting sessions
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_MACHINE_STAGING_PLACES_H_
