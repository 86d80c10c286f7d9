#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_WORLD_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_WORLD_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/tests/simulation/world/disk.h"
#include "lockstep/tests/simulation/world/life_scheduler.h"
#include "lockstep/tests/simulation/world/network.h"
#include "lockstep/tests/simulation/world/process.h"
#include "lockstep/tests/simulation/world/random.h"
#include "lockstep/tests/simulation/world/transcript.h"

namespace lockstep {
namespace simulation {

// The points at which a fault can strike: a process is about to change a file, to look at one, or to send a frame, a
// reply or a call.
enum class Point { kFile, kLook, kFrame, kReply, kCall, kNumPoints };

// The environment in which one life's processes run, and the operations on them. Everything happens in one thread, in
// an order determined by the seed. Functions that change a process must be called by events between turns
// (LifeScheduler::At, Soon).
class World {
 public:
  struct Options {
    uint64_t seed = 0;
    LifeScheduler::Options scheduler;
    // The number of lines that the transcript keeps.
    size_t transcript_lines = 0;
    // Called with each line that a process logs, including warnings and errors.
    std::function<void(const Process* process, absl::string_view line)> on_log;
    // Called with each rename that a process is about to make, as "FROM to TO".
    std::function<void(const Process* process, absl::string_view names)> on_rename;
    // Called with the new name of each file that a process has renamed.
    std::function<void(const Process* process, absl::string_view name)> on_renamed;
  };

  World(const Options& options, StackPool* stacks);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Random* random() { return &random_; }
  LifeScheduler* scheduler() { return &scheduler_; }
  Transcript* transcript() { return &transcript_; }
  Network* network() { return &network_; }
  Instant now() const { return scheduler_.now(); }

  Host* AddHost(std::string name);
  Disk* AddDisk();

  // Starts a process. The world owns it until the end of the life. `on_exit` is called between turns.
  Process* Start(Host* host, std::string name, Disk* disk, Process::Main main,
                 std::function<void(Process*)> on_exit = nullptr);
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

  // Like kill -9.
  void Kill(Process* process) { End(process, Exit{/*code=*/0, /*killed=*/true}); }
  void End(Process* process, Exit exit);
  // Stop and continue a process, like SIGSTOP and SIGCONT, or like a machine that is swapping.
  void Freeze(Process* process);
  void Thaw(Process* process);
  // Sends a stop signal.
  void Signal(Process* process);
  // Makes the process's program take an action.
  void Ask(Process* process, ProgramAction action);
  // Kills all processes of the host without notifying their peers. `disk`, if not null, keeps its synced data and a
  // random part of the rest.
  void CutPower(Host* host, Disk* disk);

  // Blocks the running task.
  void Sleep(absl::Duration duration);
  // Called when a task reaches `point`. Armed faults strike here.
  void OnPoint(Point point);
  // Calls `strike` at the n-th occurrence of `point` from now.
  void AtPoint(Point point, int64_t n, std::function<void()> strike);
  // Cancels all AtPoint registrations that have not struck yet.
  void Disarm() { armed_.clear(); }

  // Called with each logged line.
  void OnLog(absl::string_view line);
  void OnRename(const Process* process, absl::string_view names) const {
    if (on_rename_) on_rename_(process, names);
  }
  void OnRenamed(const Process* process, absl::string_view name) const {
    if (on_renamed_) on_renamed_(process, name);
  }

 private:
  struct Armed {
    Point point;
    int64_t left;
    std::function<void()> strike;
  };

  Random random_;
  Transcript transcript_;
  const std::function<void(const Process*, absl::string_view)> on_log_;
  const std::function<void(const Process*, absl::string_view)> on_rename_;
  const std::function<void(const Process*, absl::string_view)> on_renamed_;
  LifeScheduler scheduler_;
  Network network_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Disk>> disks_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::list<Armed> armed_;
};

// Returns the world of the current life, or null between lives.
World* CurrentWorld();
// Sends all later logs to CurrentWorld() and nowhere else.
void CaptureLogs();

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_WORLD_H_
