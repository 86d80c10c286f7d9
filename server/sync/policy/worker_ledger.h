#ifndef LOCKSTEP_SERVER_SYNC_POLICY_WORKER_LEDGER_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_WORKER_LEDGER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/server/sync/workers/deadline_queue.h"
#include "lockstep/server/sync/workers/flat_set.h"
#include "lockstep/server/sync/workers/worker_state.h"

namespace lockstep {

// Rates every worker by its contributions. Decides whether a worker takes part in the steps, when it gets a token, how
// many slots it may take if it is slow, and whether a step waits for its copies.
//  - A worker takes part once its startup delay has passed. While it computes, it must have been heard from within
//    `patience`, and no step may have been committed without its contribution, except that a fast worker gets one more
//    step to return. A silent worker is one that did not read its last token.
//  - A worker's speed is a moving average over its contributions. A worker without contributions counts as fast.
//  - A worker's credit is what the run has gained from it, measured in steps of the run without it. A step that takes
//    longer than it would without the worker costs credit, and every step grants kAllowance. A worker in debt only
//    computes backups, and nothing waits for it. Over any number of steps, a worker costs the run at most the allowance
//    and its initial credit.
//  - A session that disconnects and reconnects, for example over a bad link, keeps its speed, credit and rank.
// Speeds and times determine which worker computes, but never the results. Every change costs amortized O(log N), plus
// moving elements in a FlatSet. Pure; not thread-safe.
class WorkerLedger {
 public:
  // kFull gets an equal share. kPart takes slots that it finishes before the others would. kBackup computes copies of
  // the others' slots. kSilent gets a token if there is no other worker.
  enum Rank { kFull, kPart, kBackup, kSilent };
  static constexpr int kRanks = 4;
  using Sessions = absl::InlinedVector<uint64_t, 8>;
  // A worker is slow if a slot takes it this many times as long as the fastest worker.
  static constexpr double kSlow = 1.25;
  // Credit is measured in steps.
  static constexpr double kFirstCredit = 2, kMostCredit = 8, kMostDebt = 64, kAllowance = 0.03;
  // Maximum number of removed sessions whose judgments are kept.
  static constexpr size_t kMostGone = 1024;

  WorkerLedger(int64_t slots, absl::Duration patience, int64_t step)
      : slots_(slots), patience_(patience), step_(step) {}

  void Update(uint64_t session, const WorkerState& worker);
  void Remove(uint64_t session);
  // Sets the global step.
  void SetStep(int64_t step);
  // If no worker takes part, starts the first worker that is held back by its startup delay. Otherwise, the run would
  // wait for a delay that only a later step ends, or for a worker that has left or is silent.
  void StartOneIfNobodyTakesPart(absl::Time now);

  // Records that a contribution of this many slots has ended, `took` after its token was issued.
  void OnContributed(uint64_t session, int64_t slots, absl::Duration took);
  // Excludes a worker whose lease has ended, until it waits for a token.
  void OnLeaseEnded(uint64_t session);
  // Records that a step was committed while these sessions were computing for it. Ignores sessions that wait for a
  // token. Returns the sessions that were still computing for an earlier step.
  Sessions OnPassed(const Sessions& sessions);
  // Records that a step in which the worker took part was committed `took` after it began. `last` is true if other
  // workers waited for this one. `copies` is the number of slots that had to be computed twice.
  void OnStep(uint64_t session, absl::Duration took, bool last, int64_t copies);

  // Returns the number of workers that take part and have this rank at their current speeds.
  int64_t Count(Rank rank, absl::Time now);
  int64_t CountAll(absl::Time now);
  // Returns the number of workers that take part and are not in debt, so that a step may wait for their copies.
  int64_t CountTrusted(absl::Time now);
  // Returns the number of workers that have started and are heard from, regardless of their work or debt. O(N).
  int64_t CountAlive(absl::Time now);
  // Returns the time that the fast workers take for a step. Infinite until it is known.
  absl::Duration usual_step() const { return usual_step_; }
  // Returns the fastest worker's time for a slot. Zero until it is known.
  double usual_slot_seconds() const { return fastest_; }

  // Returns true if a worker of this rank waits for a token.
  bool Waits(Rank rank) const { return !waiting_[rank].empty(); }
  // Returns the time at which another worker that is not silent began to wait for a token, or nullopt if none waits.
  // Examines only the first other worker of each rank.
  absl::optional<absl::Time> OtherWaitsSince(uint64_t session) const;
  // Takes the next waiting worker out of line. Workers that contributed to the newest step come first, because they
  // already have the values or are being sent them.
  struct Next {
    uint64_t session = 0;
    // The block and the step of its last token that was not an extra one.
    absl::optional<SlotBlock> last_block;
    int64_t last_step = -1;
    bool trusted = true;
  };
  // Requires Waits(rank).
  Next TakeNext(Rank rank);
  // Puts a worker back into its line, because there was no work for it.
  void PutBack(uint64_t session);
  // Returns the number of slots that a kPart worker can finish before the others would have completed the step, if it
  // starts `elapsed` after the step began.
  int64_t SlotsInTime(uint64_t session, absl::Duration elapsed) const;

 private:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  // A worker's speed and credit, and the rank that follows from them.
  struct Judgment {
    // The worker's rank while it is not silent.
    Rank place = kFull;
    bool trusted = true;
    double slot_seconds = 0;  // 0 if not known
    int64_t contributions = 0;
    // Number of consecutive contributions, up to the latest, after which the worker was rated slow.
    int64_t slow_contributions = 0;
    double credit = kFirstCredit;
    int64_t credit_step = 0;
    // The time that a step takes without this worker.
    double seconds_without = kUnlimited;
  };
  // A worker's place in the counts and lines, together with its rank.
  struct Standing {
    bool waiting = false, awaits_token = false, silent = false, left = false;
    // True if the worker was not heard from within patience_.
    bool lapsed = false;
    bool passed = false;  // set by OnLeaseEnded and OnPassed
    int64_t not_before_step = WorkerState::kNever;
    int64_t contributed_step = -1;

    friend bool operator==(const Standing& a, const Standing& b) {
      return a.waiting == b.waiting && a.awaits_token == b.awaits_token && a.silent == b.silent && a.left == b.left &&
             a.lapsed == b.lapsed && a.passed == b.passed && a.not_before_step == b.not_before_step &&
             a.contributed_step == b.contributed_step;
    }
  };
  struct Entry : Judgment, Standing {
    absl::Time heard, waits_since;
    absl::optional<SlotBlock> last_block;
    int64_t last_step = -1;

    Rank rank() const { return silent ? kSilent : place; }
  };
  using Line = FlatSet<std::pair<int64_t, uint64_t>>;  // (minus the step of the last contribution, session)

  bool HasStarted(const Standing& worker) const { return worker.not_before_step <= step_; }
  bool TakesPart(const Standing& worker) const {
    return HasStarted(worker) && !worker.left && (worker.awaits_token || (!worker.lapsed && !worker.passed));
  }
  // Enter adds the worker to the counts and lines below, and Leave removes it.
  void Enter(uint64_t session, const Entry& entry);
  void Leave(uint64_t session, const Entry& entry);
  void SetPassed(uint64_t session, Entry* entry);
  // Returns the judgment for a session that is being added: the one kept from when the session was removed, if any,
  // otherwise that of a new worker.
  Judgment TakeJudgment(uint64_t session);
  // Records a change that may affect ranks.
  void Touch() { ++changes_; }
  void DropLapsed(absl::Time now);
  // Ranks all workers if the number of changes exceeds a quarter of the number of workers.
  void RankAll();
  double Credit(const Judgment& worker) const;
  // `capacity` is the total speed of all workers that take part and are not in debt, in units of a worker that takes
  // `fastest` seconds for a slot.
  void RankOne(double fastest, double capacity, Judgment* worker) const;

  const int64_t slots_;
  const absl::Duration patience_;
  int64_t step_;
  std::map<uint64_t, Entry> entries_;
  // Removed sessions, the newest last.
  std::deque<std::pair<uint64_t, Judgment>> gone_;
  DeadlineQueue lapses_;
  int64_t changes_ = 0;
  double fastest_ = 0;  // seconds for a slot; 0 if not known
  absl::Duration usual_step_ = absl::InfiniteDuration();
  // Indexes over entries_. By rank:
  std::array<int64_t, kRanks> taking_part_ = {};
  std::array<Line, kRanks> waiting_;
  int64_t trusted_ = 0;
  FlatSet<uint64_t> behind_;                       // workers that have one more step
  FlatSet<std::pair<int64_t, uint64_t>> delayed_;  // (first step, session)
  FlatSet<uint64_t> delayed_waiting_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_WORKER_LEDGER_H_
