#ifndef LOCKSTEP_SERVER_SYNC_POLICY_WORKER_ROSTER_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_WORKER_ROSTER_H_

#include <cstdint>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/server/sync/deadline_queue.h"
#include "lockstep/server/sync/flat_set.h"
#include "lockstep/server/sync/worker_state.h"

namespace lockstep {

// Which workers take part in the steps, and which of them is the next to get a token. A worker takes part from its
// startup delay on; while it computes, only if it was heard of within `patience`. A silent one, which did not take its
// last token, is kept apart. Every change costs O(log N) and a move in memory (FlatSet). Pure; not thread-safe.
class WorkerRoster {
 public:
  WorkerRoster(absl::Duration patience, int64_t step) : patience_(patience), step_(step) {}

  void Update(uint64_t session, const WorkerState& worker);
  void Remove(uint64_t session);
  // The global step.
  void SetStep(int64_t step);
  // When nobody takes part but workers that their startup delay holds back wait, the first of those no longer is: else
  // the run would wait for itself, or for one that has left, is not heard of or is silent.
  void StartOneIfNobodyTakesPart(absl::Time now);

  // How many take part; `silent`: of those that are.
  int64_t Count(bool silent, absl::Time now);
  // Takes the next that waits for a token out of line: first those that contributed to the newest step, which have the
  // values already or are being sent them.
  struct Next {
    uint64_t session = 0;
    absl::optional<SlotBlock> last_block;
  };
  absl::optional<Next> TakeNext(bool silent);
  // There was nothing for it: back into line.
  void PutBack(uint64_t session);

 private:
  struct Entry {
    bool waiting = false, awaits_token = false, silent = false, left = false;
    absl::Time heard;
    int64_t not_before_step = WorkerState::kNever;
    int64_t contributed_step = -1;
    absl::optional<SlotBlock> last_block;
    // Not heard of within the patience.
    bool lapsed = false;

    bool StandsAs(const Entry& other) const {
      return waiting == other.waiting && awaits_token == other.awaits_token && silent == other.silent &&
             left == other.left && lapsed == other.lapsed && not_before_step == other.not_before_step &&
             contributed_step == other.contributed_step;
    }
  };
  using Line = FlatSet<std::pair<int64_t, uint64_t>>;  // (minus the step contributed to last, session)

  bool HasStarted(const Entry& entry) const { return entry.not_before_step <= step_; }
  bool TakesPart(const Entry& entry) const {
    return HasStarted(entry) && !entry.left && (entry.awaits_token || !entry.lapsed);
  }
  // Into the counts and lines below, or out of them.
  void Enter(uint64_t session, const Entry& entry);
  void Leave(uint64_t session, const Entry& entry);

  const absl::Duration patience_;
  int64_t step_;
  std::map<uint64_t, Entry> entries_;
  DeadlineQueue lapses_;
  // Indexes over entries_. By [silent]:
  int64_t taking_part_[2] = {0, 0};
  Line waiting_[2];
  FlatSet<std::pair<int64_t, uint64_t>> delayed_;  // (first step, session)
  FlatSet<uint64_t> delayed_waiting_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_WORKER_ROSTER_H_
