#ifndef LOCKSTEP_SERVER_SYNC_POLICY_SLOT_AUDIT_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_SLOT_AUDIT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// Which slots of a step are computed by two workers, what both computed, and what follows when it is not the same
// (docs/sync.md). An audited slot is drawn from (seed, step, slot). It wants two copies, and a third one of another
// worker once two differ. Copies of other slots that happen to be computed twice are compared, too, and so are those
// that come while the next step is in progress. Pure; not thread-safe.
class SlotAudit {
 public:
  struct Options {
    // Without it nothing is audited or compared.
    bool enabled = false;
    double fraction = 0;
    uint64_t seed = 0;
    int64_t slots = 1;
    // A difference fails the run.
    bool fails = false;
    // The variables of a copy's digests.
    std::vector<std::string> variables;
  };
  // What one worker computed for a slot.
  struct Copy {
    uint64_t session = 0;
    std::string worker;  // for people, with its host
    std::vector<uint64_t> digests;
  };
  struct Outcome {
    // Not OK: the copy has not as many digests as there are variables.
    absl::Status status;
    // For the log: of many differences a few.
    std::vector<std::string> warnings;
    // The run cannot continue.
    absl::Status failure;
  };

  SlotAudit(Options options, int64_t step);

  bool enabled() const { return options_.enabled; }
  // The audited slots of the step in progress, ascending.
  const std::vector<int64_t>& slots() const { return slots_; }
  bool Audits(int64_t slot) const;

  // The session begins to compute a copy of an audited slot.
  void OnLeased(int64_t slot, uint64_t session);
  // It computes none any more.
  void OnReleased(uint64_t session);
  // It has computed one, of this step or an earlier one, audited or not.
  Outcome OnCopy(int64_t step, int64_t slot, Copy copy);

  // While `workers` take part: an audited slot of which the session is to compute a copy; whether there is one for some
  // session.
  absl::optional<int64_t> Choose(uint64_t session, int64_t workers) const;
  bool Lacks(int64_t workers) const;
  // Two copies of a slot of this step differ, and a third one has to say which of them is wrong.
  bool disputed() const;
  // The sums of the step are complete: whether it still waits for copies. At most `patience` from the first time that
  // it does, or since a copy came.
  bool Waits(int64_t workers, absl::Duration patience, absl::Time now);
  // Calls `visit` with each session that computes a copy which the step would wait for.
  template <typename Visit>
  void ForEachAwaited(const Visit& visit) const {
    for (const auto& [slot, copies] : present_) {
      if (!Audits(slot) || copies.copies.size() >= copies.wanted()) continue;
      for (const uint64_t session : copies.computing) visit(session);
    }
  }
  // Copies of the step differ, and the run is to fail: why.
  absl::Status CheckCommit() const;
  void StartStep(int64_t step);
  // The step in progress begins anew, perhaps with other values: its copies count no more.
  void RestartStep();

  void FillStatus(v1::AuditStatus* status) const;

 private:
  // A slot of which a copy was begun or came.
  struct Slot {
    std::set<uint64_t> computing;
    std::vector<Copy> copies;
    std::string difference;  // empty: none

    size_t wanted() const { return difference.empty() ? 2 : 3; }
    bool Knows(uint64_t session) const;
  };
  using Slots = std::map<int64_t, Slot>;

  void Draw();
  // Another copy is wanted that nobody computes yet, and that a worker without one could.
  bool Lacks(int64_t slot, const Slot& copies, int64_t workers) const;
  // How the slot's newest copy differs from the first one; empty when it does not.
  std::string Difference(int64_t step, int64_t slot, const Slot& copies) const;
  // Whom the three copies outvote.
  static std::string Verdict(const std::vector<Copy>& copies);

  const Options options_;
  int64_t step_;
  std::vector<int64_t> slots_;
  Slots present_, previous_;
  // Since when the step has waited for the next copy.
  absl::optional<absl::Time> waiting_since_;
  v1::AuditStatus status_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_SLOT_AUDIT_H_
