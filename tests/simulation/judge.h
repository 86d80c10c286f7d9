#ifndef LOCKSTEP_TESTS_SIMULATION_JUDGE_H_
#define LOCKSTEP_TESTS_SIMULATION_JUDGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/tests/simulation/ledger.h"
#include "lockstep/tests/simulation/plan.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/world/process.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {

// Watches a life and says what must not have happened: the invariants. It sees what a person could see, exits, logs,
// the disk and what travels, and knows what was done to whom.
class Judge {
 public:
  // All must outlive this.
  Judge(const Plan* plan, World* world, Disk* disk);

  // The first thing that was wrong.
  const std::string& failure() const { return failure_; }
  void Fail(std::string what);

  // The last step is saved and the chief has said so.
  bool finished() const { return finished_; }
  // No more faults come.
  void OnCalm() { calm_since_ = world_->now(); }
  // Of what was not synced, anything may be lost.
  void OnPowerCut() { power_was_cut_ = true; }
  // Two chiefs may have met; `takes_over`: and the lock does not keep them apart.
  void OnRival(bool takes_over) {
    rivals_ = true;
    taken_over_ = taken_over_ || takes_over;
  }
  // The lock of this chief is gone; it notices when it next looks.
  void OnLogdirLost(const Process* chief) { logdir_lost_[chief] = world_->now(); }
  // Something was done to somebody, or undone, or a process has started.
  void OnDisturbance() { ++disturbances_; }
  // A thread of the program may set variables.
  void OnAssignmentWanted() { assignment_wanted_ = true; }
  // Somebody may ask for the end from now on.
  void OnEndWanted(Wish wish) { (wish == Wish::kEndWithBlock ? end_wanted_with_block_ : end_wanted_) = true; }
  void OnStartupDelay(const Process* worker, int64_t steps) { startup_delays_[worker] = steps; }

  // What the processes show.
  // `config`: that the chief was started with.
  void OnServing(Process* chief, int64_t generation, int64_t step, const config::v1::RunSpec& config);
  void OnReply(Process* chief, int64_t generation, const StepReplyFrame& reply);
  // As ReplyObserver has it.
  void OnContribution(const Process* worker, Instant at) { contributed_at_[worker] = at; }
  // As DeafRole has it.
  void OnStreamOver(std::shared_ptr<Call> call, bool replaced);
  void OnWaited(Process* chief, const absl::Status& status, int64_t step);
  void OnSlot(Process* worker, const SlotKey& key, VariableValues values);
  void OnRead(Process* reader, int64_t step, absl::Span<const train::NamedTensor> values);
  // Variables were set, and the program has been told so; `by_hook`: as in ProgramRole.
  void OnAssigned(Process* chief, const absl::optional<RunChanges::Assignment>& by_hook);
  void OnChanged(Process* chief, const RunChanges::Settings& settings);
  void OnHooksSee(Process* chief, int64_t step);
  void OnHooksEnd(Process* chief, int64_t step);
  void OnWorkerEnded(Process* worker, const absl::Status& status);
  void OnLog(const Process* process, absl::string_view line);
  void OnRename(const Process* process, absl::string_view names);
  void OnChiefExit(Process* chief);
  void OnWorkerExit(Process* worker);
  void OnLauncherExit(Process* launcher);
  // Each kWatchPeriod: whether the step moves, and those that were asked to stop do. `chief` may be null.
  void Watch(Process* chief, const std::vector<Process*>& workers);
  static constexpr absl::Duration kWatchPeriod = absl::Milliseconds(50);
  // At the end: what is on the disk.
  void CheckDisk();

  int64_t generation() const { return generation_; }
  bool IsServing(const Process* chief) const { return serving_.count(chief) > 0; }

 private:
  // The record has all settings that programs were told of.
  bool KnowsSettings() const;
  // All steps before this one are committed.
  void OnCommitted(int64_t step);
  // What threads that do not get a processor may take.
  absl::Duration Stalls() const;
  absl::Duration ProgressLimit() const;
  bool IsConnected(Process* worker, Process* chief) const;
  // Something was wrong with the disk while the process lived.
  bool DiskWasBad(const Process* process) const;
  // That a chief would start from now; -1 without one.
  int64_t StepOnDisk() const;
  // The run has ended, at the step that is on the disk.
  void CheckEnd(const std::string& what);
  // Whoever starts now ends at the step that is on the disk, too.
  bool EndIsRecorded();
  // A checkpoint has so many assignments.
  bool AreSaved(int64_t assignments);
  void CheckStopped(const Process* process, absl::Duration limit, bool healthy);
  // A chief says that this worker, by name, was silent for a lease.
  void CheckSilent(const Process* chief, absl::string_view worker);
  // What all steps take, as long as there is a worker: each its time, and each disturbance that of a step that waits.
  void CheckSum();
  absl::Duration StepLimit() const;
  // What peers that do not read make a chief keep.
  void CheckKept(const Process* chief, bool healthy);

  const Plan& plan_;
  World* const world_;
  Disk* const disk_;
  Ledger ledger_;
  std::string failure_;
  bool finished_ = false;
  // It was started again after its end, as somebody does who wants more of it.
  bool continued_ = false;
  bool rivals_ = false;
  bool taken_over_ = false;
  bool power_was_cut_ = false;
  bool end_wanted_ = false;
  bool end_wanted_with_block_ = false;
  Instant calm_since_ = kNever;

  int64_t generation_ = 0;
  std::map<const Process*, int64_t> serving_;  // the highest step of a token that the chief has given
  std::map<const Process*, int64_t> waited_;   // the committed step of a chief that has ended
  // As many assignments of the record as the chief's program knows of, and those that a checkpoint is known to have.
  int64_t acknowledged_ = 0;
  std::vector<RunChanges::Assignment> acknowledged_assignments_;
  int64_t saved_assignments_ = 0;
  // That a chief has said is saved.
  int64_t saved_step_ = -1;
  Instant last_progress_ = 0;
  // Since when a worker has been well and in touch with the chief, and a process that is to stop has had nothing in its
  // way.
  std::map<const Process*, Instant> well_since_;
  std::map<const Process*, absl::Status> ended_;
  // The settings that programs have been told the run has.
  std::vector<RunChanges::Settings> acknowledged_settings_;
  // Who computed each slot, by step, of those that are not committed as far as is known; and when each worker brought
  // slots that nobody else has computed.
  std::map<int64_t, std::map<int64_t, std::set<const Process*>>> computed_;
  std::map<const Process*, std::vector<Instant>> brought_at_;
  // Where hooks have ended the run, as far as a program was told; -1.
  int64_t hooks_end_ = -1;
  const Process* ended_by_hook_ = nullptr;  // the chief that has recorded it
  std::map<const Process*, int64_t> startup_delays_;
  std::map<const Process*, Instant> logdir_lost_;
  bool assignment_wanted_ = false;
  // Since the beginning: looks at which the run was to go on, steps that have begun, disturbances.
  int64_t good_looks_ = 0;
  int64_t steps_ = 1;
  bool measured_ = false;  // this chief has seen a step end
  int64_t disturbances_ = 1;
  // When the newest frame of a contribution came from a worker.
  std::map<const Process*, Instant> contributed_at_;
  // Streams that are to be ended within a time from `since`, in which nothing is in the chief's way.
  struct StreamOver {
    std::shared_ptr<Call> call;
    absl::Duration limit;
    Instant since = 0;
  };
  std::vector<StreamOver> streams_over_;
  // The values that a chief has lent to replies, and since when it keeps more versions of them than it may.
  struct Lent {
    const Process* chief = nullptr;
    int64_t step = 0;
    std::weak_ptr<const void> values;
  };
  std::vector<Lent> lent_;
  Instant keeps_too_many_since_ = kNever;
  std::set<std::string> reported_damaged_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_JUDGE_H_
