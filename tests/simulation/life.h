#ifndef LOCKSTEP_TESTS_SIMULATION_LIFE_H_
#define LOCKSTEP_TESTS_SIMULATION_LIFE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/tests/simulation/judge.h"
#include "lockstep/tests/simulation/plan.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/roles/roles.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {

// A simulated life, i.e. a run with its faults, from its first start to its end. Single-threaded.
class Life {
 public:
  // Keeps the last `transcript_lines` lines of the transcript.
  Life(const Plan& plan, size_t transcript_lines, StackPool* stacks);
  ~Life();

  // Runs the life. Returns the first violation, or an empty string if there is none.
  std::string Run();
  std::string TranscriptText() { return world_.transcript()->Text(); }
  int64_t turns() { return world_.scheduler()->turns(); }
  // Returns the time from the start of the life to the beginning of its newest step.
  absl::Duration training_time() const { return absl::Nanoseconds(judge_.last_progress()); }

  // Functions for the faults.
  World* world() { return &world_; }
  Random* random() { return world_.random(); }
  Judge* judge() { return &judge_; }
  const Plan& plan() const { return plan_; }
  Disk* disk() { return disk_; }
  // Returns null while the chief is not running.
  Process* chief() const { return chief_; }
  Process* launcher() const { return launcher_; }
  // Return the running workers, and one of them (null if there is none).
  std::vector<Process*> workers() const;
  Process* AnyWorker();
  std::vector<Host*> hosts() const { return hosts_; }
  void StartWorker(int index);
  // Starts a worker with a new name.
  void AddWorker();
  // Stops the worker permanently.
  void Retire(Process* worker);
  // Starts another chief on the same directory. If `takes_over`, either the first chief's lock is gone, or the other
  // chief replaces generation `replaces`, as a standby does.
  void StartOtherChief(bool takes_over, absl::optional<int64_t> replaces = absl::nullopt);
  void StartStranger();
  void StartImpostor();
  void StartDeaf();
  void StartReader();
  // Kills the chief once a hook of its program has set variables.
  void KillAfterAssignmentByHook() { kills_after_assignment_ = true; }
  // Gives a different learning rate to all chiefs that start from now on.
  void ChangeSettings();
  // Cuts the host's power. Its processes are restarted after some time.
  void CutPower(Host* host);
  // Calls `action` after `delay`, unless the life has calmed down by then.
  void UnlessCalm(absl::Duration delay, std::function<void()> action);
  // Calls `undo` after `delay`, or earlier if the life calms down.
  void After(absl::Duration delay, std::function<void()> undo);

 private:
  struct WorkerSlot {
    Process* process = nullptr;
    bool retired = false;
    bool pending = false;
  };

  void Arm(const Plan::Fault& fault);
  void Calm();
  bool IsOver();
  void StartChief();
  Process* StartChiefProcess(Host* host, const std::string& name, ChiefRole role);
  Process* StartWorkerProcess(int index, const std::string& master);
  // Makes the slow worker hang, if it is due. Called before the worker computes a slot of the step.
  void Hang(Process* worker, int64_t step);
  void StartLauncher();
  Process* StartChild(const std::vector<std::string>& command);
  void OnChiefExit(Process* process);
  void OnWorkerExit(int index, Process* process);
  void OnLauncherExit(Process* process);
  // Calls `action`, which restarts a process, after a random delay.
  void Later(std::function<void()> action);
  ChiefRole NewChiefRole(const std::string& listen);
  Host* HostOfWorker(int index) const;
  std::string Master() const;
  void Watch();

  const Plan plan_;
  World world_;
  Disk* const disk_;
  Judge judge_;
  std::vector<Host*> hosts_;  // the first is the chief's
  Process* chief_ = nullptr;
  Process* launcher_ = nullptr;
  std::vector<WorkerSlot> workers_;
  int other_chiefs_ = 0;
  int strangers_ = 0;
  std::string open_session_;  // the newest request
  int readers_ = 0;
  int64_t hang_step_ = -1;  // of the slow worker's next hang
  // The configuration for the next start of a chief.
  config::v1::RunSpec config_;
  bool changed_ = false;
  bool kills_after_assignment_ = false;
  bool chief_pending_ = false;
  bool calm_ = false;
  size_t ended_ = 0;  // the processes before this one have ended
  std::vector<std::shared_ptr<std::function<void()>>> undos_;
};

// Runs the plan's life. If the plan has a slow worker, first runs the same life without it, and requires that the run
// has at least 0.95 of the speed that it has without the worker. Returns the first violation, or an empty string if
// there is none, and the transcript of the last life.
std::string RunLife(const Plan& plan, size_t transcript_lines, StackPool* stacks, std::string* transcript);

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_LIFE_H_
