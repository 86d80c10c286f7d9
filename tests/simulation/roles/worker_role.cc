#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/tests/simulation/roles/chief_client.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/roles/roles.h"
#include "lockstep/tests/simulation/world/world.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/monitored/monitored_session.h"
#include "lockstep/train/session/end/stop_signal.h"
#include "lockstep/train/session/worker_session.h"
#include "lockstep/worker/session/block/block_observer.h"
#include "lockstep/worker/session/training_worker.h"

namespace lockstep {
namespace simulation {
namespace {

// An observer that requests the end of the run in a block's report.
class EndingObserver : public BlockObserver {
 public:
  void EndWithNextBlock() { end_ = true; }
  void OnSession(bool) override {}
  Decision BeforeBlock(const v1::Token&, BlockAdditions* additions) override {
    additions->stop = std::exchange(end_, false);
    return Decision::kCompute;
  }
  bool AwaitDemand() override { return true; }
  void AfterBlock(const v1::Token&, double) override {}
  void OnResult(v1::ContributionResult) override {}
  void OnRunOver() override {}

 private:
  bool end_ = false;
};

struct RunningWorker {
  RunningWorker(TrainingWorker::Options options, std::unique_ptr<ChiefClient> chief)
      : client(std::move(chief)), worker(Observed(std::move(options), &observer), client.get()) {}
  static TrainingWorker::Options Observed(TrainingWorker::Options options, BlockObserver* observer) {
    options.observer = observer;
    return options;
  }
  const std::unique_ptr<ChiefClient> client;
  EndingObserver observer;
  TrainingWorker worker;
};

TrainingWorker::Options WorkerOptions(Process* process, const WorkerRole& role) {
  World* const world = process->world();
  TrainingWorker::Options options;
  options.name = role.name;
  options.host = process->host()->name;
  options.build = SimulatedBuild();
  options.clock = process->clock();
  options.executor = process->executor();
  options.chief_address = role.master;
  options.startup_delay_steps = role.startup_delay_steps;
  options.draw_incarnation = [world] { return world->random()->Next(); };
  options.make_workload = [process, world, role](const config::v1::RunSpec& config) -> absl::StatusOr<Workload> {
    ComputeHooks hooks;
    hooks.before_slot = [process, world, role](const SlotKey& key, VariableValues values) {
      if (!process->ghost()) role.on_slot(process, key, values);
      while (!process->ghost() && world->now() < process->hangs_until) world->Sleep(absl::Milliseconds(20));
      world->Sleep(world->random()->Between(role.slot_time * role.least_part, role.slot_time));
    };
    const absl::Duration lease = absl::Seconds(config.cluster().lease_seconds());
    hooks.before_gradient = [process, world, lease] {
      const Instant slow = world->now() + absl::ToInt64Nanoseconds(world->random()->Between(lease / 4, lease * 3 / 4));
      while (!process->ghost() && world->now() < std::min(slow, process->slow_until)) {
        world->Sleep(absl::Milliseconds(5));
      }
      if (world->random()->Chance(0.5))
        world->Sleep(world->random()->Between(absl::Nanoseconds(1), absl::Milliseconds(1)));
    };
    return NewTinyWorkload(config, role.rules, std::move(hooks));
  };
  return options;
}

// A hook that watches the blocks of a worker's program, reads variables, and requests the end of the run.
class WatchingHook : public train::Hook {
 public:
  WatchingHook(Process* process, const WorkerRole* role) : process_(process), role_(*role) {}

  void OnAction(ProgramAction action) { action_ = action; }

  std::string name() const override { return "watch"; }
  absl::Status AfterCreateSession(train::Session&) override {
    last_ = -1;
    return absl::OkStatus();
  }
  absl::Status BeforeRun(train::RunContext& context) override {
    step_ = context.global_step();
    if (process_->world()->random()->Chance(0.2)) {
      for (const char* variable : {"a", "counter"}) context.Fetch(variable);
    }
    return Request(ProgramAction::kEndWithBlock, &context.session());
  }
  absl::Status AfterRun(train::RunContext& context, const train::RunValues& run) override {
    const int64_t made = run.result.global_step;
    if (made <= step_ || (made < last_ && role_.steps_grow)) {
      Wrong(absl::StrCat("its hooks see a block of step ", made - 1, " after one of step ", last_ - 1,
                         ", and were notified of step ", step_));
    }
    last_ = made;
    std::vector<train::NamedTensor> fetched;
    for (const auto& entry : run.fetched) fetched.push_back(entry.second);
    if (!fetched.empty() && !process_->ghost()) role_.on_read(process_, run.fetched_step, fetched);
    return Request(ProgramAction::kEnd, &context.session());
  }

 private:
  absl::Status Request(ProgramAction action, train::Session* session) {
    if (action_ != action) return absl::OkStatus();
    action_ = absl::nullopt;
    const absl::Status requested = session->RequestStop("a hook of a worker wants it");
    LOG(INFO) << "asked for the end: " << requested;
    return absl::OkStatus();
  }
  void Wrong(const std::string& what) {
    if (!process_->ghost()) role_.on_wrong(process_, what);
  }

  Process* const process_;
  const WorkerRole& role_;
  absl::optional<ProgramAction> action_;
  int64_t step_ = 0;   // of the newest BeforeRun
  int64_t last_ = -1;  // of the newest AfterRun in this session
};

train::MonitoredSessionOptions ProgramOptions(Process* process, const WorkerRole& role, train::StopSignal* stop) {
  train::MonitoredSessionOptions options;
  options.session.is_chief = false;
  options.session.master = role.master;
  options.session.name = role.name;
  options.session.startup_delay_steps = role.startup_delay_steps;
  options.session.stop = stop;
  options.session.clock = process->clock();
  options.session.fs = process->fs();
  options.session.op.make_workload = WorkerOptions(process, role).make_workload;
  options.max_wait = absl::InfiniteDuration();
  options.recovery.max_attempts = std::numeric_limits<int>::max();
  options.session.open = [process, role](const train::SessionOptions& session) -> absl::StatusOr<train::HeldSession> {
    SimulatedConnector connector(process);
    train::HeldSession held;
    ASSIGN_OR_RETURN(held.session, train::WorkerSession::Open(session, WorkerOptions(process, role), &connector));
    return held;
  };
  return options;
}

}  // namespace

int RunWorker(Process* process, const WorkerRole& role) {
  SimulatedConnector connector(process);
  auto client = connector.Connect(ParseMasterAddress(role.master).value()).value();
  const auto worker = std::make_shared<RunningWorker>(WorkerOptions(process, role), std::move(client));
  process->SetStop([worker] { worker->worker.RequestStop(); });
  process->SetActionHandler([worker, process](ProgramAction action) {
    if (action == ProgramAction::kEndWithBlock) return worker->observer.EndWithNextBlock();
    // The call may outlive the worker if it gets no answer.
    process->executor()
        ->Start("asks for the end",
                [worker] { LOG(INFO) << "asked for the end: " << worker->worker.RequestFinish("a worker wants it"); })
        ->Detach();
  });
  const absl::Status status = worker->worker.Run();
  LOG(INFO) << role.name << ": " << status;
  if (!process->ghost()) role.on_ended(process, status);
  process->ClearStop();
  return ExitCodeOf(status);
}

int RunWorkerProgram(Process* process, const WorkerRole& role) {
  train::StopSignal stop;
  WatchingHook hook(process, &role);
  process->SetStop([&stop] { stop.Request(); });
  process->SetActionHandler([&hook](ProgramAction action) { hook.OnAction(action); });
  train::MonitoredSessionOptions options = ProgramOptions(process, role, &stop);
  options.hooks = {&hook};
  const absl::Status status = train::WithSession(train::MonitoredSession::Create(std::move(options)),
                                                 [](train::MonitoredSession& session) -> absl::Status {
                                                   while (!session.ShouldStop()) {
                                                     RETURN_IF_ERROR(session.Run(train::TrainOp()).status());
                                                   }
                                                   return absl::OkStatus();
                                                 });
  LOG(INFO) << role.name << ": " << status;
  if (!process->ghost()) role.on_ended(process, status);
  process->ClearStop();
  return ExitCodeOf(status);
}

}  // namespace simulation
}  // namespace lockstep
