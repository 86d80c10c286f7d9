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

// A machine, with a wall clock and power of its own.
struct Host {
  explicit Host(std::string name) : name(std::move(name)) {}
  const std::string name;
  // The error of its wall clock.
  absl::Duration wall_error;
  // If false, no process runs on the host.
  bool powered = true;
};

// The way in which a process has ended.
struct Exit {
  int code = 0;
  bool killed = false;
};

// An action that a process's program takes by itself.
enum class ProgramAction { kEnd, kEndWithBlock, kAssign, kChange };

// A process of the operating system: its threads, its clocks, its view of the disk, and its exit. Started by World.
// Main runs in its own thread; the process ends when main returns, or at the instant at which it is killed or calls
// ExitNow. In these two cases it becomes a ghost, which the scheduler runs to its end.
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

  // True until the process ends.
  bool alive() const { return !exit_; }
  bool frozen() const { return group_.frozen; }
  bool ghost() const { return group_.ghost; }
  const absl::optional<Exit>& exit() const { return exit_; }

  // Sets the handler of stop signals, which runs in its own thread. Called by main. If a signal came earlier, the
  // handler runs now.
  void SetStop(std::function<void()> on_stop);
  // Sets the handler of World::Ask, which runs in a new thread each time. Called by main.
  void SetActionHandler(std::function<void(ProgramAction)> on_action);
  // Removes both handlers, and waits until those that run have returned.
  void ClearStop();
  // The time of the first stop signal; kNever without one.
  Instant stopped_at() const { return stopped_at_; }
  // Used by the judge: the time of a worker's last message from its chief.
  Instant heard_at = 0;
  // Used by the judge: the time of the last token that came after a contribution on the same stream. It tells the
  // worker that the contribution was taken; no other message does.
  Instant told_at = 0;
  // The time until which a worker makes no progress with its current or next slot, while its heartbeats continue.
  Instant hangs_until = 0;
  // The time until which a worker's gradients are slow, each within a lease, and its heartbeats are lost.
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
