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

// Where a fault may be made to strike: the instants at which a process is about to do something that others see.
enum class Point { kFile, kLook, kFrame, kReply, kCall, kNumPoints };

// Everything in which the processes of one life run, and what may be done to them. All of it happens in one thread, in
// an order that the seed draws. Calls that change a process are for events between turns (LifeScheduler::At, Soon).
class World {
 public:
  struct Options {
    uint64_t seed = 0;
    LifeScheduler::Options scheduler;
    // Lines that the transcript keeps.
    size_t transcript_lines = 0;
    // Each line that a process logs: warnings and errors too.
    std::function<void(const Process* process, absl::string_view line)> on_log;
    // Each file that a process is about to rename, "FROM to TO".
    std::function<void(const Process* process, absl::string_view names)> on_rename;
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

  // `on_exit` is called between turns. The process is owned by the world, to the end of the life.
  Process* Start(Host* host, std::string name, Disk* disk, Process::Main main,
                 std::function<void(Process*)> on_exit = nullptr);
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

  // kill -9.
  void Kill(Process* process) { End(process, Exit{/*code=*/0, /*killed=*/true}); }
  void End(Process* process, Exit exit);
  // SIGSTOP and SIGCONT, or a machine that swaps.
  void Freeze(Process* process);
  void Thaw(Process* process);
  // A stop signal.
  void Signal(Process* process);
  // Its program has a wish.
  void Ask(Process* process, Wish wish);
  // All processes of the host are gone, and nobody learns it; its disk, if that is not null, keeps what was synced, and
  // more if so drawn.
  void CutPower(Host* host, Disk* disk);

  // In a task.
  void Sleep(absl::Duration duration);
  // In a task: it is at such a point now. What was to strike here does.
  void OnPoint(Point point);
  // `strike` is called at the n-th such point from now.
  void AtPoint(Point point, int64_t n, std::function<void()> strike);
  // What was to strike at a point does not.
  void Disarm() { armed_.clear(); }

  // Called with each line that is logged.
  void OnLog(absl::string_view line);
  void OnRename(const Process* process, absl::string_view names) const {
    if (on_rename_) on_rename_(process, names);
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
  LifeScheduler scheduler_;
  Network network_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Disk>> disks_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::list<Armed> armed_;
};

// The world of the life that is being lived; null between lives.
World* CurrentWorld();
// What programs log goes to CurrentWorld() from now on, and nowhere else.
void CaptureLogs();

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_WORLD_H_
