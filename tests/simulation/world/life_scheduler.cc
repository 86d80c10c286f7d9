#include "lockstep/tests/simulation/world/life_scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace lockstep {
namespace simulation {

class LifeScheduler::Task {
 public:
  enum class State { kReady, kWaiting, kContended, kDone };

  Task(TaskGroup* group, std::string name, std::function<void()> body, StackPool* stacks)
      : group(group), name(std::move(name)), fiber(std::move(body), stacks) {}

  TaskGroup* const group;
  const std::string name;
  Fiber fiber;
  State state = State::kReady;
  // Used in state kWaiting.
  const void* key = nullptr;
  Instant deadline = kNever;
  bool timed_out = false;
  // In state kContended, the value of progress_ when the task entered that state.
  int64_t contended_at = 0;
};

LifeScheduler::LifeScheduler(const Options& options, Random* random, StackPool* stacks)
    : options_(options), random_(random), stacks_(stacks) {
  CHECK(Scheduler::Get() == nullptr) << "one life at a time";
  Scheduler::Set(this);
  DrawNextSwitch();
}

LifeScheduler::~LifeScheduler() {
  events_.clear();
  turn_events_.clear();
  soon_.clear();
  tasks_.clear();
  Scheduler::Set(nullptr);
}

Instant LifeScheduler::now() const {
  return current_ != nullptr && current_->group->ghost ? current_->group->ghost_now : now_;
}

TaskGroup* LifeScheduler::running() const { return current_ == nullptr ? nullptr : current_->group; }

std::shared_ptr<LifeScheduler::Task> LifeScheduler::Start(TaskGroup* group, std::string name,
                                                          absl::AnyInvocable<void()> body) {
  auto shared = std::make_shared<absl::AnyInvocable<void()>>(std::move(body));
  auto task = std::make_shared<Task>(
      group, std::move(name),
      [shared] {
        (*shared)();
        *shared = nullptr;
      },
      stacks_);
  tasks_.push_back(task);
  return task;
}

void LifeScheduler::Join(Task* task) {
  while (task->state != Task::State::kDone) WaitFor(task, kNever);
}

void LifeScheduler::At(Instant time, std::function<void()> event) { events_.emplace(time, std::move(event)); }

void LifeScheduler::DrawNextSwitch() { locks_until_switch_ = random_->Between(1, 2 * options_.locks_between_switches); }

void LifeScheduler::Suspend() { current_->fiber.Suspend(); }

void LifeScheduler::OnLock() {
  if (current_ == nullptr || uninterrupted_ > 0 || --locks_until_switch_ > 0) return;
  DrawNextSwitch();
  if (!current_->group->ghost && random_->Chance(options_.stall_chance)) {
    WaitFor(nullptr, now_ + absl::ToInt64Nanoseconds(random_->Between(absl::Nanoseconds(1), options_.longest_stall)));
  } else {
    Suspend();
  }
}

void LifeScheduler::OnContention() {
  CHECK(current_ != nullptr) << "a lock that is held between turns";
  current_->state = Task::State::kContended;
  current_->contended_at = progress_;
  Suspend();
}

void LifeScheduler::Yield() {
  if (current_ != nullptr) Suspend();
}

bool LifeScheduler::Wait(const CondVar* cv, absl::Duration timeout) {
  // A timeout of a day or more means no limit. A fraction of a nanosecond is rounded up, because a wait of 0 ns would
  // be repeated forever.
  const absl::Duration whole = absl::Ceil(timeout, absl::Nanoseconds(1));
  return WaitFor(cv, whole >= absl::Hours(24) ? kNever : now() + absl::ToInt64Nanoseconds(whole));
}

bool LifeScheduler::WaitFor(const void* key, Instant deadline) {
  CHECK(current_ != nullptr) << "a wait between turns";
  Task* const task = current_;
  task->state = Task::State::kWaiting;
  task->key = key;
  task->deadline = deadline;
  task->timed_out = false;
  Suspend();
  return task->timed_out;
}

void LifeScheduler::Notify(const CondVar* cv, bool all) {
  candidates_.clear();
  for (const auto& task : tasks_) {
    if (task->state == Task::State::kWaiting && task->key == cv && cv != nullptr) candidates_.push_back(task.get());
  }
  if (candidates_.empty()) return;
  if (!all) {
    random_->Pick(candidates_)->state = Task::State::kReady;
    return;
  }
  for (Task* const task : candidates_) task->state = Task::State::kReady;
}

void LifeScheduler::WakeGroup(const TaskGroup* group) {
  for (const auto& task : tasks_) {
    if (task->group == group && task->state == Task::State::kWaiting) task->state = Task::State::kReady;
  }
}

void LifeScheduler::RunTask(Task* task) {
  ++turns_;
  current_ = task;
  task->fiber.Resume();
  current_ = nullptr;
  if (task->state != Task::State::kContended) ++progress_;
  if (!task->fiber.done()) return;
  task->state = Task::State::kDone;
  Wake(task);
  tasks_.erase(std::find_if(tasks_.begin(), tasks_.end(), [task](const auto& each) { return each.get() == task; }));
}

LifeScheduler::Task* LifeScheduler::Pick(const TaskGroup* group) {
  candidates_.clear();
  const auto collect = [this, group](Task::State state) {
    for (const auto& task : tasks_) {
      if (task->state != state || (group == nullptr ? task->group->frozen : task->group != group)) continue;
      // The lock can become free only after another task has run.
      if (state == Task::State::kContended && task->contended_at == progress_) continue;
      candidates_.push_back(task.get());
    }
  };
  collect(Task::State::kReady);
  if (candidates_.empty()) collect(Task::State::kContended);
  if (candidates_.empty()) return nullptr;
  Task* const task = random_->Pick(candidates_);
  task->state = Task::State::kReady;
  return task;
}

bool LifeScheduler::AdvanceTime() {
  Instant next = events_.empty() ? kNever : events_.begin()->first;
  for (const auto& task : tasks_) {
    if (task->state == Task::State::kWaiting && !task->group->frozen) next = std::min(next, task->deadline);
  }
  if (next == kNever) return false;
  now_ = std::max(now_, next);
  for (const auto& task : tasks_) {
    if (task->state != Task::State::kWaiting || task->group->frozen || task->deadline > now_) continue;
    task->state = Task::State::kReady;
    task->timed_out = true;
  }
  while (!events_.empty() && events_.begin()->first <= now_) {
    const std::function<void()> event = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    event();
  }
  return true;
}

LifeScheduler::End LifeScheduler::Run(absl::FunctionRef<bool()> done, Instant limit) {
  while (true) {
    while (!soon_.empty()) {
      const std::vector<std::function<void()>> events = std::exchange(soon_, {});
      for (const auto& event : events) event();
    }
    while (!turn_events_.empty() && turn_events_.begin()->first <= turns_) {
      const std::function<void()> event = std::move(turn_events_.begin()->second);
      turn_events_.erase(turn_events_.begin());
      event();
    }
    if (done()) return End::kDone;
    if (now_ > limit) return End::kTooLong;
    if (turns_ > options_.max_turns) return End::kTooManyTurns;
    if (Task* const task = Pick(nullptr)) {
      RunTask(task);
    } else if (!AdvanceTime()) {
      return End::kStuck;
    }
  }
}

bool LifeScheduler::AdvanceGhost(TaskGroup* group) {
  Task* next = nullptr;
  for (const auto& task : tasks_) {
    if (task->group != group || task->state != Task::State::kWaiting || task->deadline == kNever) continue;
    if (next == nullptr || task->deadline < next->deadline) next = task.get();
  }
  if (next == nullptr) return false;
  group->ghost_now = std::max(group->ghost_now, next->deadline);
  next->state = Task::State::kReady;
  next->timed_out = true;
  return true;
}

void LifeScheduler::Drain(TaskGroup* group) {
  CHECK(current_ == nullptr && group->ghost);
  // Limits the work for tasks that hang forever or run periodically, which are then dropped.
  constexpr int64_t kMaxTurns = 20000;
  for (int64_t turn = 0; turn < kMaxTurns; ++turn) {
    if (Task* const task = Pick(group)) {
      RunTask(task);
    } else if (!AdvanceGhost(group)) {
      break;
    }
  }
  tasks_.erase(std::remove_if(tasks_.begin(), tasks_.end(), [group](const auto& task) { return task->group == group; }),
               tasks_.end());
}

std::string LifeScheduler::Describe() const {
  std::string text;
  for (const auto& task : tasks_) {
    const char* const state = task->state == Task::State::kWaiting     ? "waits"
                              : task->state == Task::State::kContended ? "waits for a lock"
                                                                       : "may run";
    absl::StrAppend(&text, "  ", task->group->name, "/", task->name, " ", state, task->group->frozen ? ", frozen" : "");
    if (task->state == Task::State::kWaiting && task->deadline != kNever) {
      absl::StrAppend(&text, " until ", absl::FormatDuration(absl::Nanoseconds(task->deadline)));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace simulation
}  // namespace lockstep
