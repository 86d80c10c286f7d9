#include "lockstep/tests/simulation/world/process.h"

#include <utility>

#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {
namespace {

class ProcessThread : public Thread {
 public:
  ProcessThread(LifeScheduler* scheduler, std::shared_ptr<LifeScheduler::Task> task)
      : scheduler_(scheduler), task_(std::move(task)) {}
  ~ProcessThread() override { ProcessThread::Join(); }
  void Join() override {
    if (task_ != nullptr) scheduler_->Join(task_.get());
    task_ = nullptr;
  }
  void Detach() override { task_ = nullptr; }

 private:
  LifeScheduler* const scheduler_;
  std::shared_ptr<LifeScheduler::Task> task_;
};

class ProcessExecutor : public Executor {
 public:
  ProcessExecutor(World* world, TaskGroup* group) : world_(world), group_(group) {}

 private:
  std::unique_ptr<Thread> StartThread(std::string name, Priority, absl::AnyInvocable<void()> body) override {
    return std::make_unique<ProcessThread>(world_->scheduler(),
                                           world_->scheduler()->Start(group_, std::move(name), std::move(body)));
  }

  World* const world_;
  TaskGroup* const group_;
};

// The machine's wall clock, and a monotonic clock that counts from the machine's start.
class ProcessClock : public Clock {
 public:
  ProcessClock(World* world, const Host* host) : world_(world), host_(host) {}
  absl::Time Now() override { return absl::UnixEpoch() + kUptime + absl::Nanoseconds(world_->now()); }
  absl::Time WallTime() override {
    return absl::FromUnixSeconds(1600000000) + absl::Nanoseconds(world_->now()) + host_->wall_error;
  }
  bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) override {
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) return true;
    cv->WaitWithTimeout(mutex, left);
    return Now() >= deadline;
  }

 private:
  static constexpr absl::Duration kUptime = absl::Hours(30);

  World* const world_;
  const Host* const host_;
};

}  // namespace

Process::Process(World* world, Host* host, std::string name, Disk* disk)
    : world_(world),
      host_(host),
      group_{std::move(name)},
      executor_(std::make_unique<ProcessExecutor>(world, &group_)),
      clock_(std::make_unique<ProcessClock>(world, host)),
      files_(this, disk) {}

Process::~Process() = default;

void Process::SetStop(std::function<void()> on_stop) {
  on_stop_ = std::move(on_stop);
  if (stopped_at_ != kNever || ghost()) HandleStop();
}

void Process::SetActionHandler(std::function<void(ProgramAction)> on_action) { on_action_ = std::move(on_action); }

void Process::ClearStop() {
  on_stop_ = nullptr;
  on_action_ = nullptr;
  while (handling_ > 0) world_->scheduler()->WaitFor(this, kNever);
}

void Process::HandleStop() {
  if (!on_stop_) return;
  ++handling_;
  on_stop_();
  --handling_;
  world_->scheduler()->Wake(this);
}

void Process::OnSignal() {
  if (!alive()) return;
  if (stopped_at_ == kNever) stopped_at_ = world_->now();
  if (on_stop_) world_->scheduler()->Start(&group_, "signals", [this] { HandleStop(); });
}

void Process::OnAction(ProgramAction action) {
  if (!alive() || !on_action_) return;
  world_->scheduler()->Start(&group_, "action", [this, action] {
    const std::function<void(ProgramAction)> on_action = on_action_;
    if (!on_action) return;
    ++handling_;
    on_action(action);
    --handling_;
    world_->scheduler()->Wake(this);
  });
}

void Process::ExitNow(int code) {
  world_->scheduler()->Soon([this, code] { world_->End(this, Exit{code, /*killed=*/false}); });
  world_->scheduler()->Yield();
}

}  // namespace simulation
}  // namespace lockstep
