#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_PROCESS_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/tests/simulation/world/disk.h"
#include "lockstep/tests/simulation/world/life_scheduler.h"

namespace lockstep {
namespace simulation {

class Process;
class World;

// A machine with its own wall clock and power supply.
struct Host {
  explicit Host(std::string name) : name(std::move(name)) {}
  const std::string name;
  // The difference between the host's wall clock and the true time.
  absl::Duration wall_error;
  // If false, no process runs on the host.
  bool powered = true;
};

// The way in which a process ended.
struct Exit {
  int code = 0;
  bool killed = false;
};

// An action that a process's program can take.
enum class ProgramAction { kEnd, kEndWithBlock, kAssign, kChange };

// An operating system process: its threads, its clocks, its view of the disk, and its exit. Started by World. `main`
// runs in its own thread. The process ends when `main` returns, or the moment it is killed or calls ExitNow. In the
// latter two cases, it becomes a ghost, which the scheduler runs to its end.
class Process {
 public:
  using Main = std::function<int(Process*)>;

  Process(World* world, Host* host, std::string name, Disk* disk);
  ~Process();

  World* world() const { return world_; }
  Host* host() const { return host_; }
  const std::string& name() const { return group_.name; }
  TaskGroup* group() { return &group_; }
  Executor* executor() const { return executor_.get(); }
  Clock* clock() const { return clock_.get(); }
  FileSystem* fs() { return &files_; }
  Instant started() const { return started_; }

  // Returns true until the process ends.
  bool alive() const { return !exit_; }
  bool frozen() const { return group_.frozen; }
  bool ghost() const { return group_.ghost; }
  const absl::optional<Exit>& exit() const { return exit_; }

  // Sets the handler for stop signals. Called by main. Each signal runs the handler in a new thread; if a signal came
  // before this call, the handler runs now, in the calling thread.
  void SetStop(std::function<void()> on_stop);
  // Sets the handler for World::Ask, which runs in a new thread each time. Called by main.
  void SetActionHandler(std::function<void(ProgramAction)> on_action);
  // Removes both handlers, and waits until running handlers have returned.
  void ClearStop();
  // Returns the time of the first stop signal, or kNever if there was none.
  Instant stopped_at() const { return stopped_at_; }
  // Time of the last message that a worker received from its chief. Used by the judge.
  Instant heard_at = 0;
  // Time of the last token that a worker received after a contribution on the same stream. Only such a token tells the
  // worker that its contribution was taken. Used by the judge.
  Instant told_at = 0;
  // Until this time, a worker makes no progress with its current or next slot, while its heartbeats continue.
  Instant hangs_until = 0;
  // Until this time, a worker computes gradients slowly, though each within a lease, and its heartbeats are lost.
  Instant slow_until = 0;
  Instant frozen_at = 0;
  Instant thawed_at = 0;
  absl::Duration longest_freeze;
  // Ends the process immediately, as _exit does. Called by one of its own threads; returns only in a ghost.
  void ExitNow(int code);

 private:
  friend class World;
  void OnSignal();
  void OnAction(ProgramAction action);
  void HandleStop();

  World* const world_;
  Host* const host_;
  TaskGroup group_;
  const std::unique_ptr<Executor> executor_;
  const std::unique_ptr<Clock> clock_;
  ProcessFiles files_;
  Instant started_ = 0;
  Instant stopped_at_ = kNever;
  std::function<void()> on_stop_;
  std::function<void(ProgramAction)> on_action_;
  int handling_ = 0;
  absl::optional<Exit> exit_;
  std::function<void(Process*)> on_exit_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_PROCESS_H_
