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

// A machine: a clock on its wall, a disk, and a place in the network.
struct Host {
  explicit Host(std::string name) : name(std::move(name)) {}
  const std::string name;
  // What its wall clock shows beyond the true time.
  absl::Duration wall_error;
  // Off: nothing runs, and nobody is answered.
  bool powered = true;
};

// How a process has ended.
struct Exit {
  int code = 0;
  bool killed = false;
};

// What the program of a process may do of its own accord.
enum class Wish { kEnd, kEndWithBlock, kAssign, kChange };

// A process of the operating system: its threads, its clocks, its view of the disk, and how it ends. Started by World.
// Life: main runs in a thread of its own; the process has ended when main has returned, or at the instant at which it
// is killed. From then on it is a ghost, run to its end by the scheduler.
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
  bool creates_file() const { return files_.creates(); }
  Instant started() const { return started_; }

  // Not ended.
  bool alive() const { return !exit_; }
  bool frozen() const { return group_.frozen; }
  bool ghost() const { return group_.ghost; }
  const absl::optional<Exit>& exit() const { return exit_; }

  // Called by main. What a stop signal does, in a thread of its own; one that came before does it now.
  void SetStop(std::function<void()> on_stop);
  // Called by main: what the program does of its own accord, each time in a thread of its own.
  void SetWish(std::function<void(Wish)> on_wish);
  // Later signals and wishes do nothing; waits for those that are being handled.
  void ClearStop();
  // When the first stop signal came; kNever.
  Instant stopped_at() const { return stopped_at_; }
  // For those who judge it: when a worker last heard anything of its chief; since when it is frozen, and for how long
  // at most it was.
  Instant heard_at = 0;
  // Until then a worker computes nothing more of the slot that it has begun or begins next, while its heartbeats
  // continue.
  Instant hangs_until = 0;
  // Until then its gradients come slowly, each within a lease, and its heartbeats are lost.
  Instant slow_until = 0;
  Instant frozen_at = 0;
  Instant thawed_at = 0;
  absl::Duration longest_freeze;
  // Ends the process on the spot, as _exit does. From one of its own threads; returns to a ghost.
  void ExitNow(int code);

 private:
  friend class World;
  void OnSignal();
  void OnWish(Wish wish);
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
  std::function<void(Wish)> on_wish_;
  int handling_ = 0;
  absl::optional<Exit> exit_;
  std::function<void(Process*)> on_exit_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_PROCESS_H_
