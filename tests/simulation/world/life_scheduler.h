#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_LIFE_SCHEDULER_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_LIFE_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/tests/simulation/world/fiber.h"
#include "lockstep/tests/simulation/world/random.h"

namespace lockstep {
namespace simulation {

// Nanoseconds since a life began.
using Instant = int64_t;
constexpr Instant kNever = std::numeric_limits<Instant>::max();

// The threads of one process, which are frozen and killed together. A ghost is a process that was killed or has called
// ExitNow. The scheduler still runs it to its end, on a clock of its own, so that its memory is freed, but nothing that
// it does has an effect.
struct TaskGroup {
  std::string name;
  bool frozen = false;
  bool ghost = false;
  Instant ghost_now = 0;
};

// A scheduler that runs the threads of all processes of a life in one thread, one at a time. A task runs until it
// blocks or until it yields as it takes a lock; the next task is chosen at random. Time advances only when no task can
// run, and then jumps to the next deadline. Owns the tasks. While this object exists, it is the Scheduler of this
// process.
class LifeScheduler final : public Scheduler {
 public:
  struct Options {
    // Mean number of locks taken between two yields. The actual number is random.
    int64_t locks_between_switches = 8;
    // Probability that a task that yields at a lock then gets no processor time for a while, and the maximum length of
    // such a stall.
    double stall_chance = 0;
    absl::Duration longest_stall = absl::Milliseconds(20);
    // Maximum number of turns. A life that takes more is considered to be in an endless loop.
    int64_t max_turns = 3000000;
  };
  class Task;

  // `random` and `stacks` must outlive this object.
  LifeScheduler(const Options& options, Random* random, StackPool* stacks);
  ~LifeScheduler() override;

  // Returns a ghost's own time if a ghost is running, and otherwise the life's time.
  Instant now() const;
  // Returns the running process, or null between turns.
  TaskGroup* running() const;

  // Starts a task. `group` must outlive the task. Objects that `body` refers to must outlive a detached task.
  std::shared_ptr<Task> Start(TaskGroup* group, std::string name, absl::AnyInvocable<void()> body);
  // Blocks the running task until `task` has ended.
  void Join(Task* task);
  // Call `event` between two turns: at a given time, or before the next turn.
  void At(Instant time, std::function<void()> event);
  void Soon(std::function<void()> event) { soon_.push_back(std::move(event)); }
  // Calls `event` before the n-th turn of the life.
  void AtTurn(int64_t turn, std::function<void()> event) { turn_events_.emplace(turn, std::move(event)); }

  // Blocks the running task until Wake(key), a spurious wakeup or `deadline`. Returns true if `deadline` has passed.
  // `key` is only compared, never dereferenced.
  bool WaitFor(const void* key, Instant deadline);
  void Wake(const void* key) { Notify(static_cast<const CondVar*>(key), /*all=*/true); }
  // Wakes all waiting tasks of the group spuriously.
  void WakeGroup(const TaskGroup* group);
  // While an instance exists, the running task does not yield at locks.
  class Uninterrupted {
   public:
    explicit Uninterrupted(LifeScheduler* scheduler) : scheduler_(scheduler) { ++scheduler_->uninterrupted_; }
    ~Uninterrupted() { --scheduler_->uninterrupted_; }
    Uninterrupted(const Uninterrupted&) = delete;
    Uninterrupted& operator=(const Uninterrupted&) = delete;

   private:
    LifeScheduler* const scheduler_;
  };
  // Lets another task run, if a task is running.
  void Yield();

  enum class End { kDone, kStuck, kTooLong, kTooManyTurns };
  // Runs until `done` returns true, the life's time exceeds `limit`, or nothing more can happen. `done` is called
  // between turns.
  End Run(absl::FunctionRef<bool()> done, Instant limit);
  // Runs a ghost to its end, and drops tasks that do not end. Called between turns.
  void Drain(TaskGroup* group);

  int64_t turns() const { return turns_; }
  // Returns a description of each task's state, to explain why a life is stuck.
  std::string Describe() const;

  void OnLock() override;
  void OnContention() override;
  bool Wait(const CondVar* cv, absl::Duration timeout) override;
  void Notify(const CondVar* cv, bool all) override;

 private:
  // A task with its number. Sets of them are in the order in which the tasks were started, so that a random choice
  // among them depends on the seed alone.
  using Numbered = std::pair<int64_t, Task*>;

  void RunTask(Task* task);
  void Suspend();
  // Makes a task ready, whatever its state.
  void MakeReady(Task* task);
  // Removes a task from the set of its state.
  void Unlist(Task* task);
  void Forget(Task* task);
  // Picks a random task that can run, from `group` or, if that is null, from all groups that are not frozen. Returns
  // null if there is none.
  Task* Pick(const TaskGroup* group);
  // Advances the time to the next deadline or event. Returns false if there is none.
  bool AdvanceTime();
  bool AdvanceGhost(TaskGroup* group);
  void DrawNextSwitch();

  const Options options_;
  Random* const random_;
  StackPool* const stacks_;
  Instant now_ = 0;
  int64_t turns_ = 0;
  // The number of turns that did not end at a lock held by another task.
  int64_t progress_ = 0;
  int64_t locks_until_switch_ = 1;
  int uninterrupted_ = 0;
  Task* current_ = nullptr;
  int64_t started_ = 0;  // the newest task's number
  std::map<int64_t, std::shared_ptr<Task>> tasks_;
  std::unordered_map<const TaskGroup*, std::vector<Task*>> groups_;
  // The tasks by state. No step of the scheduler looks at all tasks, since a life may have thousands that wait.
  std::set<Numbered> ready_;
  std::set<Numbered> contended_;
  std::set<std::pair<const void*, Numbered>> waiting_;  // by key, without those whose key is null
  std::set<std::pair<Instant, Numbered>> deadlines_;    // of the waiting tasks, without kNever
  std::vector<Task*> candidates_;                       // scratch
  std::multimap<Instant, std::function<void()>> events_;
  std::multimap<int64_t, std::function<void()>> turn_events_;
  std::vector<std::function<void()>> soon_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_LIFE_SCHEDULER_H_
