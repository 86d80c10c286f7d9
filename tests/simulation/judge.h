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
#include "lockstep/tests/simulation/staleness_watch.h"
#include "lockstep/tests/simulation/stream_ledger.h"
#include "lockstep/tests/simulation/world/process.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {

// An observer of a life, which reports violated invariants. It sees only what a user could see (exits, logs, the disk
// and messages), and knows which faults struck which process.
class Judge {
 public:
  // All arguments must outlive this object.
  Judge(const Plan* plan, World* world, Disk* disk);

  // Returns the first violation, or an empty string if there is none.
  const std::string& failure() const { return failure_; }
  void Fail(std::string what);

  // Returns true if the last step is saved and the chief has reported it.
  bool finished() const { return finished_; }
  // Called when no more faults will strike.
  void OnCalm() { calm_since_ = world_->now(); }
  // Called on a power cut, which may lose any data that was not synced.
  void OnPowerCut() { power_was_cut_ = true; }
  // Called when two chiefs may run at the same time. If `takes_over`, or if a lock was lost before, the lock does not
  // prevent it.
  void OnRival(bool takes_over) {
    rivals_ = true;
    taken_over_ = taken_over_ || takes_over || !logdir_lost_.empty();
  }
  // Called when the chief's lock is gone. The chief notices at its next check.
  void OnLogdirLost(const Process* chief) { logdir_lost_[chief] = world_->now(); }
  // Called when a fault strikes or is undone, or a process starts.
  void OnDisturbance() { ++disturbances_; }
  // Called when a thread of the program may set variables.
  void OnAssignmentWanted() { assignment_wanted_ = true; }
  // Called when the end of the run may be requested from now on.
  void OnEndWanted(ProgramAction action) {
    (action == ProgramAction::kEndWithBlock ? end_wanted_with_block_ : end_wanted_) = true;
  }
  void OnStartupDelay(const Process* worker, int64_t steps) { startup_delays_[worker] = steps; }

  // The following functions are called on events that the processes produce.
  //
  // `config` is the chief's configuration.
  void OnServing(Process* chief, int64_t generation, int64_t step, const config::v1::RunSpec& config);
  void OnReply(Process* chief, const std::shared_ptr<Call>& stream, const StepReplyFrame& reply);
  void OnFrame(const std::shared_ptr<Call>& stream, const StepFrame& frame);
  // See ReplyObserver.
  void OnContribution(const Process* worker, Instant at) { contributed_at_[worker] = at; }
  // See DeafRole.
  void OnStreamOver(std::shared_ptr<Call> call, std::shared_ptr<Call> successor);
  void OnWaited(Process* chief, const absl::Status& status, int64_t step);
  void OnSlot(Process* worker, const SlotKey& key, VariableValues values);
  void OnRead(Process* reader, int64_t step, absl::Span<const train::NamedTensor> values);
  // Called when the program was notified that variables were set or settings changed. Hooks' changes are announced
  // beforehand, and need to be on disk only with the next checkpoint.
  void OnAssigned(Process* chief, bool by_hook);
  void OnChanged(Process* chief, const RunChanges::Settings& settings);
  void OnHookAssigns(Process* chief, const RunChanges::Assignment& assignment);
  void OnHookChanges(Process* chief, int64_t step, const RunChanges::Settings& settings);
  // Called when a hook's last announced change failed.
  void OnHookFailed(Process* chief);
  void OnHooksSee(Process* chief, int64_t step);
  void OnHooksEnd(Process* chief, int64_t step);
  void OnWorkerEnded(Process* worker, const absl::Status& status);
  void OnLog(const Process* process, absl::string_view line);
  void OnRename(const Process* process, absl::string_view names);
  void OnRenamed(const Process* process, absl::string_view name);
  void OnChiefExit(Process* chief);
  void OnWorkerExit(Process* worker);
  void OnLauncherExit(Process* launcher);
  // Called every kWatchPeriod. Checks that steps advance and that stopped processes exit. `chief` may be null.
  void Watch(Process* chief, const std::vector<Process*>& workers);
  static constexpr absl::Duration kWatchPeriod = absl::Milliseconds(50);
  // Checks the disk at the end of the life.
  void CheckDisk();

  int64_t generation() const { return generation_; }
  // Returns the time at which the newest step began.
  Instant last_progress() const { return last_progress_; }
  bool IsServing(const Process* chief) const { return serving_.count(chief) > 0; }

 private:
  // In a run of streams, checks what the chief hands out when it starts.
  void BeginStreams(int64_t step);
  // Checks a checkpoint; `listed` is as in Ledger::CheckCheckpoint.
  absl::Status CheckCheckpoint(const BundleReader& reader, bool listed);
  // Returns true if the record has the settings of all changes that were confirmed to programs.
  bool KnowsSettings() const;
  // Called when all steps before this one are committed.
  void OnCommitted(int64_t step);
  // Returns the time that threads may lose because they get no processor time.
  absl::Duration Stalls() const;
  absl::Duration ProgressLimit() const;
  // Returns the processes that have an open Step stream with the chief.
  std::set<const Process*> ConnectedWith(const Process* chief) const;
  // Returns true if the disk had a fault during the process's life.
  bool DiskWasBad(const Process* process) const;
  // Returns the step of the newest checkpoint, or -1 if there is none.
  int64_t StepOnDisk() const;
  // Checks that the step on disk is one at which the run was to end.
  void CheckEnd(const std::string& what);
  // Returns true if a chief that starts now would also end at the step on disk.
  bool EndIsRecorded();
  // Returns true if a checkpoint has at least this many assignments.
  bool AreSaved(int64_t assignments);
  // Returns the 1-based position of the newest of these assignments that no hook made, or 0 if there is none.
  int64_t NewestByProgram(const std::vector<RunChanges::Assignment>& assignments) const;
  void CheckStopped(const Process* process, absl::Duration limit, bool healthy);
  // Checks a checkpoint that a chief has logged as saved.
  void CheckSaved(const std::string& prefix);
  void CheckStaleness();
  // Checks a chief's log line that says that this worker was silent for a lease.
  void CheckSilent(const Process* chief, absl::string_view worker);
  // Checks the total time of all steps while a worker is present. Each step may take StepLimit(), and each disturbance
  // adds ProgressLimit().
  void CheckSum();
  absl::Duration StepLimit() const;
  // Checks that peers that do not read cannot make a chief keep streams and old values.
  void CheckKept(const Process* chief, bool healthy);

  const Plan& plan_;
  World* const world_;
  Disk* const disk_;
  Ledger ledger_;
  // Tracks the values of a run whose workers read streams. Null for other runs.
  std::unique_ptr<StreamLedger> streams_;
  // Set with async { max_staleness }, unless threads may stall. Otherwise null.
  std::unique_ptr<StalenessWatch> staleness_;
  std::string failure_;
  bool finished_ = false;
  // True if the run was restarted after its end, to train further.
  bool continued_ = false;
  bool rivals_ = false;
  bool taken_over_ = false;
  bool power_was_cut_ = false;
  bool end_wanted_ = false;
  bool end_wanted_with_block_ = false;
  Instant calm_since_ = kNever;

  int64_t generation_ = 0;
  std::map<const Process*, int64_t> serving_;  // the highest step of any token that the chief gave
  // Chiefs whose successor serves. They may no longer publish files.
  std::set<const Process*> fenced_;
  std::map<const Process*, int64_t> waited_;  // the committed step of a chief that has ended
  // `acknowledged_` is the number of assignments known to the chief's program. `acknowledged_assignments_` are the
  // assignments up to the newest that must be on disk. `saved_assignments_` is the number of assignments known to be in
  // a checkpoint.
  int64_t acknowledged_ = 0;
  std::vector<RunChanges::Assignment> acknowledged_to_hooks_;  // by the running chief
  std::vector<RunChanges::Assignment> acknowledged_assignments_;
  int64_t saved_assignments_ = 0;
  // All assignments that hooks have ever announced.
  std::vector<RunChanges::Assignment> hook_assignments_;
  // The chief that serves the current run, if its hooks' newest announcement was new.
  const Process* announced_by_ = nullptr;
  // The newest step that a chief has logged as saved.
  int64_t saved_step_ = -1;
  Instant last_progress_ = 0;
  // The time since which a worker has been healthy and connected to the chief, or since which nothing has delayed a
  // process's stop.
  std::map<const Process*, Instant> well_since_;
  std::map<const Process*, absl::Status> ended_;
  // The changed settings of which programs were notified.
  std::vector<RunChanges::Settings> acknowledged_settings_;
  // For each step that is not known to be committed, the workers that computed each of its slots. For each worker, the
  // times at which slots that only this worker computed were committed.
  std::map<int64_t, std::map<int64_t, std::set<const Process*>>> computed_;
  std::map<const Process*, std::vector<Instant>> brought_at_;
  // The step at which hooks ended the run, once a program was notified of it; otherwise -1.
  int64_t hooks_end_ = -1;
  const Process* ended_by_hook_ = nullptr;  // the chief that recorded it
  std::map<const Process*, int64_t> startup_delays_;
  std::map<const Process*, Instant> logdir_lost_;
  bool assignment_wanted_ = false;
  // Counts since the beginning: calls of Watch that saw a healthy worker, steps begun, and disturbances.
  int64_t good_looks_ = 0;
  int64_t steps_ = 1;
  bool measured_ = false;  // this chief has seen a step end
  int64_t disturbances_ = 1;
  // The time of each worker's newest contribution frame.
  std::map<const Process*, Instant> contributed_at_;
  // The stream of each worker's newest frame.
  std::map<const Process*, std::weak_ptr<Call>> framed_by_;
  // Streams that the chief must end within `limit` from `since`, the last time at which something prevented it.
  struct StreamOver {
    std::shared_ptr<Call> call, successor;
    absl::Duration limit;
    Instant since = 0;
  };
  std::vector<StreamOver> streams_over_;
  // The values that a chief has lent to replies, and the time since which it has kept too many versions of them.
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
