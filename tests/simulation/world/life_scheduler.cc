#include "lockstep/tests/simulation/world/life_scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace lockstep {
namespace simulation {

class LifeScheduler::Task {
 public:
  enum class State { kReady, kWaiting, kContended, kDone };

  Task(int64_t number, TaskGroup* group, std::string name, std::function<void()> body, StackPool* stacks)
      : number(number), group(group), name(std::move(name)), fiber(std::move(body), stacks) {}

  const int64_t number;
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
      ++started_, group, std::move(name),
      [shared] {
        (*shared)();
        *shared = nullptr;
      },
      stacks_);
  tasks_.emplace(task->number, task);
  groups_[group].push_back(task.get());
  ready_.emplace(task->number, task.get());
  return task;
}

void LifeScheduler::Unlist(Task* task) {
  const Numbered numbered(task->number, task);
  switch (task->state) {
    case Task::State::kReady:
      ready_.erase(numbered);
      break;
    case Task::State::kWaiting:
      waiting_.erase({task->key, numbered});
      deadlines_.erase({task->deadline, numbered});
      break;
    case Task::State::kContended:
      contended_.erase(numbered);
      break;
    case Task::State::kDone:
      break;
  }
}

void LifeScheduler::MakeReady(Task* task) {
  if (task->state == Task::State::kReady) return;
  Unlist(task);
  task->state = Task::State::kReady;
  ready_.emplace(task->number, task);
}

void LifeScheduler::Forget(Task* task) {
  Unlist(task);
  std::vector<Task*>& group = groups_[task->group];
  group.erase(std::find(group.begin(), group.end(), task));
  const int64_t number = task->number;
  tasks_.erase(number);
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
  Unlist(current_);
  contended_.emplace(current_->number, current_);
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
  Unlist(task);
  task->state = Task::State::kWaiting;
  task->key = key;
  task->deadline = deadline;
  task->timed_out = false;
  const Numbered numbered(task->number, task);
  if (key != nullptr) waiting_.emplace(key, numbered);
  if (deadline != kNever) deadlines_.emplace(deadline, numbered);
  Suspend();
  return task->timed_out;
}

void LifeScheduler::Notify(const CondVar* cv, bool all) {
  const void* const key = cv;
  if (key == nullptr) return;
  candidates_.clear();
  for (auto it = waiting_.lower_bound({key, Numbered()}); it != waiting_.end() && it->first == key; ++it) {
    candidates_.push_back(it->second.second);
  }
  if (candidates_.empty()) return;
  if (!all) return MakeReady(random_->Pick(candidates_));
  for (Task* const task : candidates_) MakeReady(task);
}

void LifeScheduler::WakeGroup(const TaskGroup* group) {
  for (Task* const task : groups_[group]) {
    if (task->state == Task::State::kWaiting) MakeReady(task);
  }
}

void LifeScheduler::RunTask(Task* task) {
  ++turns_;
  current_ = task;
  task->fiber.Resume();
  current_ = nullptr;
  if (task->state != Task::State::kContended) ++progress_;
  if (!task->fiber.done()) return;
  Unlist(task);
  task->state = Task::State::kDone;
  Wake(task);
  Forget(task);
}

LifeScheduler::Task* LifeScheduler::Pick(const TaskGroup* group) {
  candidates_.clear();
  for (const Task::State state : {Task::State::kReady, Task::State::kContended}) {
    const auto consider = [&](Task* task) {
      if (task->state != state || (group == nullptr && task->group->frozen)) return;
      // The lock can become free only after another task has run.
      if (state == Task::State::kContended && task->contended_at == progress_) return;
      candidates_.push_back(task);
    };
    if (group != nullptr) {
      for (Task* const task : groups_[group]) consider(task);
    } else {
      for (const auto& entry : state == Task::State::kReady ? ready_ : contended_) consider(entry.second);
    }
    if (!candidates_.empty()) break;
  }
  if (candidates_.empty()) return nullptr;
  Task* const task = random_->Pick(candidates_);
  MakeReady(task);
  return task;
}

bool LifeScheduler::AdvanceTime() {
  Instant next = events_.empty() ? kNever : events_.begin()->first;
  candidates_.clear();
  for (const auto& [deadline, numbered] : deadlines_) {
    if (deadline > std::max(next, now_)) break;
    if (numbered.second->group->frozen) continue;
    next = std::min(next, deadline);
    candidates_.push_back(numbered.second);
  }
  if (next == kNever) return false;
  now_ = std::max(now_, next);
  for (Task* const task : candidates_) {
    MakeReady(task);
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
  for (Task* const task : groups_[group]) {
    if (task->state != Task::State::kWaiting || task->deadline == kNever) continue;
    if (next == nullptr || task->deadline < next->deadline) next = task;
  }
  if (next == nullptr) return false;
  group->ghost_now = std::max(group->ghost_now, next->deadline);
  MakeReady(next);
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
  for (Task* const task : std::vector<Task*>(groups_[group])) Forget(task);
}

std::string LifeScheduler::Describe() const {
  std::string text;
  for (const auto& entry : tasks_) {
    const Task* const task = entry.second.get();
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
