#ifndef LOCKSTEP_SERVER_SYNC_MACHINE_STAGING_PLACES_H_
#define LOCKSTEP_SERVER_SYNC_MACHINE_STAGING_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace lockstep {

// Decides which contributions may be staged now: the chief holds no more of them than it has places. A contribution
// takes a place when its first gradients come, and keeps it until its end. Others wait in line, the oldest in front,
// and nothing is read from their workers. A contribution that makes no progress while others wait loses its place: it
// is dropped, and its worker computes the batch again. Pure; not thread-safe.
class StagingPlaces {
 public:
  enum class Verdict { kStage, kDrop, kWait };

  // `places`: 1 or more.
  explicit StagingPlaces(int64_t places) : places_(places) {}

  // A frame of the session's contribution has come, or is handed over again. Once the verdict is kStage it stays so
  // until End or TakeBack, and once it is kDrop, until End.
  Verdict Ask(uint64_t session, absl::Time now);
  // The contribution is over: it counts, or is unwanted, or its worker is gone. Ignored if it has not asked.
  void End(uint64_t session);
  // Gives free places to those that wait; returns them.
  std::vector<uint64_t> Admit(absl::Time now);
  // Takes places from contributions none of whose frames has come since `since`, the one that has stood still longest
  // first, and no more than sessions wait. Returns whose; they have the verdict kDrop now.
  std::vector<uint64_t> TakeBack(absl::Time since);
  // Drops the contribution, which must wait.
  void Drop(uint64_t session);
  // Forgives contributions for a time in which no worker could send, because the run was held.
  void Touch(absl::Time now);
  // Nothing is staged any more. Returns those that waited.
  std::vector<uint64_t> Clear();

  bool waits(uint64_t session) const { return HasVerdict(session, Verdict::kWait); }
  bool stages(uint64_t session) const { return HasVerdict(session, Verdict::kStage); }
  // True if the further frames of the session's contribution must be dropped.
  bool drops(uint64_t session) const { return HasVerdict(session, Verdict::kDrop); }
  const std::deque<uint64_t>& line() const { return line_; }

 private:
  struct Contribution {
    Verdict verdict = Verdict::kWait;
    absl::Time last;  // when its last frame came, if it is staged
  };

  bool HasVerdict(uint64_t session, Verdict verdict) const;
  void LeaveLine(uint64_t session);

  const int64_t places_;
  int64_t taken_ = 0;
  absl::flat_hash_map<uint64_t, Contribution> contributions_;  // by session
  std::deque<uint64_t> line_;                                  // those that wait
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_MACHINE_STAGING_PLACES_H_
