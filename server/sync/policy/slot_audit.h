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

// Chooses the slots of a step that two workers compute, compares their copies, and decides how to handle a mismatch
// (docs/sync.md). Which slots are audited is drawn from (seed, step, slot). An audited slot needs two copies and, once
// two differ, a third copy from another worker. Copies of other slots that happen to be computed twice are also
// compared, and so are copies that arrive while the next step is in progress. Pure; not thread-safe.
class SlotAudit {
 public:
  struct Options {
    // If false, nothing is audited or compared.
    bool enabled = false;
    double fraction = 0;
    uint64_t seed = 0;
    int64_t slots = 1;
    // If true, a mismatch fails the run.
    bool fails = false;
    // The variables whose gradients a copy's digests cover.
    std::vector<std::string> variables;
  };
  // A worker's result for a slot.
  struct Copy {
    uint64_t session = 0;
    std::string worker;  // for display, with its host
    std::vector<uint64_t> digests;
  };
  struct Outcome {
    // Not OK if the number of digests is not the number of variables.
    absl::Status status;
    // Mismatches to log. If there are many, only a few are logged.
    std::vector<std::string> warnings;
    // Not OK if the run cannot continue.
    absl::Status failure;
  };

  SlotAudit(Options options, int64_t step);

  bool enabled() const { return options_.enabled; }
  // The audited slots of the step in progress, ascending.
  const std::vector<int64_t>& slots() const { return slots_; }
  bool Audits(int64_t slot) const;

  // Records that the session begins to compute a copy of an audited slot.
  void OnLeased(int64_t slot, uint64_t session);
  // Records that the session no longer computes a copy.
  void OnReleased(uint64_t session);
  // Compares a copy that a session has computed, for this step or an earlier one, audited or not.
  Outcome OnCopy(int64_t step, int64_t slot, Copy copy);

  // Returns an audited slot of which the session should compute a copy, given that `workers` workers take part.
  absl::optional<int64_t> Choose(uint64_t session, int64_t workers) const;
  // Returns true if Choose would return a slot for some session.
  bool Lacks(int64_t workers) const;
  // Returns true if two copies of a slot of this step differ, and a third one must decide which of them is wrong.
  bool disputed() const;
  // Returns true if the step, whose sums are complete, still waits for copies. It waits for at most `patience`, counted
  // from the first such call or from the last copy that arrived.
  bool Waits(int64_t workers, absl::Duration patience, absl::Time now);
  // Calls `visit` with each session that computes a copy that the step would wait for.
  template <typename Visit>
  void ForEachAwaited(const Visit& visit) const {
    for (const auto& [slot, copies] : present_) {
      if (!Audits(slot) || copies.copies.size() >= copies.wanted()) continue;
      for (const uint64_t session : copies.computing) visit(session);
    }
  }
  // Returns the mismatch between copies of the step as an error if it must fail the run, and OK otherwise.
  absl::Status CheckCommit() const;
  void StartStep(int64_t step);
  // Forgets the copies of the step in progress, which restarts, possibly with different values.
  void RestartStep();

  void FillStatus(v1::AuditStatus* status) const;

 private:
  // A slot for which a copy has been started or has arrived.
  struct Slot {
    std::set<uint64_t> computing;
    std::vector<Copy> copies;
    std::string difference;  // empty if there is none

    size_t wanted() const { return difference.empty() ? 2 : 3; }
    bool Knows(uint64_t session) const;
  };
  using Slots = std::map<int64_t, Slot>;

  void Draw();
  // Returns true if the slot needs another copy that no worker is computing yet, and some worker without a copy of it
  // could compute one.
  bool Lacks(int64_t slot, const Slot& copies, int64_t workers) const;
  // Describes how the slot's newest copy differs from the first one; empty if it does not.
  std::string Difference(int64_t step, int64_t slot, const Slot& copies) const;
  // Describes which worker is outvoted by the other two.
  static std::string Verdict(const std::vector<Copy>& copies);

  const Options options_;
  int64_t step_;
  std::vector<int64_t> slots_;
  Slots present_, previous_;
  // The time since which the step has waited for the next copy.
  absl::optional<absl::Time> waiting_since_;
  v1::AuditStatus status_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_SLOT_AUDIT_H_
