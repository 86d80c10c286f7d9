#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/tests/simulation/roles/chief_server.h"
#include "lockstep/tests/simulation/roles/roles.h"
#include "lockstep/tests/simulation/world/world.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/stop/early_stopping_hook.h"
#include "lockstep/train/monitored/monitored_session.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/train/session/chief_session.h"
#include "lockstep/train/session/end/stop_signal.h"

namespace lockstep {
namespace simulation {
namespace {

// Equals the limit in Program.
constexpr absl::Duration kStopLimit = absl::Seconds(60);

train::NamedTensor Assigned(const std::string& name) {
  const std::vector<float> values = AssignedValues(name);
  Tensor tensor(TypeOf(name), Shape({static_cast<int64_t>(values.size())}));
  std::memcpy(tensor.data(), values.data(), values.size() * sizeof(float));
  return {name, std::move(tensor)};
}

// Draws an assignment to one or two variables or optimizer states. Some of the variables are constant. A reader that
// sees a part of an assignment must also see the rest.
std::vector<train::NamedTensor> DrawAssignment(const config::v1::RunSpec& config, uint64_t draw) {
  const std::string state = StateNames(config.optimizer()).back();
  switch (draw % 5) {
    case 0:
      return {Assigned("a"), Assigned("a" + state)};
    case 1:
      return {Assigned("counter"), Assigned("average/biased")};
    case 2:
      return {Assigned("fixed")};
    case 3:
      return {Assigned("scale"), Assigned("c")};
    default:
      return {Assigned("c" + state), Assigned("b")};
  }
}

// Draws a learning rate and a batch size.
RunChanges::Settings DrawSettings(uint64_t draw) {
  return {0.01f * static_cast<float>(1 + draw % 5), static_cast<int64_t>(1 + draw / 5 % 3)};
}

absl::Status ChangeTo(const config::v1::RunSpec& config, const RunChanges::Settings& settings,
                      train::Session* session) {
  SettingsChange change;
  change.optimizer = config.optimizer();
  change.optimizer->mutable_learning_rate()->set_initial(settings.rate);
  change.batch_size = settings.batch_size;
  return session->ChangeSettings(change);
}

// Returns true if a change was rejected because the run was not being held between two steps.
bool WasNotHeld(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), "only between two steps");
}

// A hook that sees each update once, in order, and keeps a digest of all updates. Does not gate.
class CountingHook : public train::Hook {
 public:
  CountingHook(Process* process, const ProgramRole* role) : process_(process), role_(*role) {}
  std::string name() const override { return kCountingHook; }
  bool GatesAt(int64_t) const override { return false; }
  absl::Status AfterCreateSession(train::Session&) override {
    if (!std::exchange(restored_, false)) seen_ = SeenUpdates();
    begins_ = true;
    return absl::OkStatus();
  }
  absl::Status AfterRun(train::RunContext& context, const train::RunValues& values) override {
    begins_ = false;
    if (context.stop_requested()) ended_at_ = values.result.global_step;
    const int64_t step = values.result.global_step;
    if (!process_->ghost()) role_.on_hooks_see(process_, step);
    if (step != seen_.step + 1) {
      Wrong(absl::StrCat("its hooks see step ", step, " after step ", seen_.step));
    }
    v1::StepCommit commit;
    commit.set_step(step);
    commit.set_mean_loss(values.result.loss);
    seen_.See(commit);
    World* const world = process_->world();
    if (!process_->ghost()) world->transcript()->Add(world->now(), process_->name(), "its hooks see step ", step);
    if (role_.rules.hook_time > absl::ZeroDuration()) {
      world->Sleep(world->random()->Between(absl::Nanoseconds(1), role_.rules.hook_time));
    }
    return absl::OkStatus();
  }
  // Returns the step at which an earlier hook ended the run, or -1 if none did.
  int64_t ended_at() const { return ended_at_; }
  std::string State() const override {
    if (begins_) process_->world()->Sleep(4 * role_.rules.hook_time);
    return seen_.ToString();
  }
  absl::Status SetState(absl::string_view state) override {
    const std::pair<std::string, std::string> parts = absl::StrSplit(state, ' ');
    restored_ = absl::SimpleAtoi(parts.first, &seen_.step) && absl::SimpleAtoi(parts.second, &seen_.losses);
    return restored_ ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("no such state: ", state));
  }

 private:
  void Wrong(const std::string& what) {
    if (!process_->ghost()) role_.on_wrong(process_, what);
  }

  Process* const process_;
  const ProgramRole& role_;
  SeenUpdates seen_;
  bool restored_ = false;
  // True until the session's first step. Until then, State takes extra time, and the first step must not begin before
  // it returns.
  bool begins_ = false;
  int64_t ended_at_ = -1;
};

// A hook that reads and sets variables after some steps, and gates those steps.
class AssigningHook : public train::Hook {
 public:
  AssigningHook(Process* process, const ProgramRole* role) : process_(process), role_(*role) {}
  std::string name() const override { return "assign"; }
  bool GatesAt(int64_t step) const override { return role_.rules.AssignsAfter(step); }
  absl::Status BeforeRun(train::RunContext& context) override {
    for (const std::string& name :
         {std::string("a"), "a" + StateNames(role_.chief.config.optimizer())[0], std::string("average/biased")}) {
      if (GatesAt(context.global_step() + 1)) context.Fetch(name);
    }
    return absl::OkStatus();
  }
  absl::Status AfterRun(train::RunContext& context, const train::RunValues& run) override {
    const int64_t step = run.result.global_step;
    if (!GatesAt(step)) return absl::OkStatus();
    if (run.fetched_step != step) {
      Wrong(absl::StrCat("its hooks hold step ", step, ", and read step ", run.fetched_step));
    }
    std::vector<train::NamedTensor> fetched;
    for (const auto& entry : run.fetched) fetched.push_back(entry.second);
    if (!process_->ghost()) role_.on_read(process_, run.fetched_step, fetched);
    if (role_.rules.assigns_by_chance && process_->world()->random()->Chance(0.5)) return absl::OkStatus();
    const std::vector<train::NamedTensor> values = DrawAssignment(role_.chief.config, static_cast<uint64_t>(step));
    RunChanges::Assignment assignment;
    assignment.step = step;
    for (const train::NamedTensor& value : values) assignment.variables.push_back(value.name);
    if (!process_->ghost()) role_.on_hook_assigns(process_, assignment);
    const absl::Status assigned = context.session().Assign(values);
    if (!assigned.ok() && !process_->ghost()) role_.on_hook_failed(process_);
    if (WasNotHeld(assigned)) Wrong(std::string(assigned.message()));
    // A disk fault may be transient, so the hook lets another session try again.
    const bool ends =
        absl::IsCancelled(assigned) || absl::IsOutOfRange(assigned) || absl::IsFailedPrecondition(assigned);
    if (!assigned.ok() && !ends) return absl::UnavailableError(assigned.message());
    RETURN_IF_ERROR(assigned);
    if (!process_->ghost()) role_.on_assigned(process_, /*by_hook=*/true);
    return absl::OkStatus();
  }

 private:
  void Wrong(const std::string& what) {
    if (!process_->ghost()) role_.on_wrong(process_, what);
  }

  Process* const process_;
  const ProgramRole& role_;
};

// A hook that changes settings after some steps, and gates those steps.
class ChangingHook : public train::Hook {
 public:
  ChangingHook(Process* process, const ProgramRole* role) : process_(process), role_(*role) {}
  std::string name() const override { return "change"; }
  bool GatesAt(int64_t step) const override { return role_.rules.ChangesAfter(step); }
  absl::Status AfterRun(train::RunContext& context, const train::RunValues& run) override {
    const int64_t step = run.result.global_step;
    if (!GatesAt(step)) return absl::OkStatus();
    const RunChanges::Settings settings = DrawSettings(static_cast<uint64_t>(step));
    if (!process_->ghost()) role_.on_hook_changes(process_, step, settings);
    const absl::Status changed = ChangeTo(role_.chief.config, settings, &context.session());
    if (!changed.ok() && !process_->ghost()) role_.on_hook_failed(process_);
    if (WasNotHeld(changed) && !process_->ghost()) role_.on_wrong(process_, std::string(changed.message()));
    const bool ends = absl::IsCancelled(changed) || absl::IsOutOfRange(changed) || absl::IsFailedPrecondition(changed);
    if (!changed.ok() && !ends) return absl::UnavailableError(changed.message());
    return changed;
  }

 private:
  Process* const process_;
  const ProgramRole& role_;
};

// A session shared with other threads of the program. The destructor waits until they no longer use it.
class SharedSession : public train::SessionDecorator {
 public:
  SharedSession(World* world, std::unique_ptr<train::ChiefSession> session, SharedSession** self)
      : SessionDecorator(session.get()), world_(world), session_(std::move(session)), self_(self) {
    *self_ = this;
  }
  ~SharedSession() override {
    *self_ = nullptr;
    session_->chief()->ends()->RequestStop();
    while (users_ > 0) world_->scheduler()->WaitFor(this, kNever);
  }
  absl::Status Use(absl::FunctionRef<absl::Status(train::Session*)> function) {
    ++users_;
    const absl::Status status = function(session_.get());
    --users_;
    world_->scheduler()->Wake(this);
    return status;
  }

 private:
  World* const world_;
  const std::unique_ptr<train::ChiefSession> session_;
  SharedSession** const self_;
  int users_ = 0;
};

// The part of a program's main that uses the session.
class RunningProgram {
 public:
  RunningProgram(Process* process, const ProgramRole& role) : process_(process), role_(role) {
    // Added first, so that the program learns of a stop before its session does.
    stop_.Add([this] { told_to_stop_ = true; });
  }

  void RequestStop() { stop_.Request(); }
  void OnAction(ProgramAction action) {
    if (session_ == nullptr) return;
    Random* const random = process_->world()->random();
    const absl::Status status = session_->Use([&](train::Session* session) -> absl::Status {
      if (action == ProgramAction::kEnd) return session->RequestStop("the program wants it");
      if (action == ProgramAction::kChange) {
        const RunChanges::Settings settings = DrawSettings(random->Next());
        RETURN_IF_ERROR(ChangeTo(role_.chief.config, settings, session));
        if (!process_->ghost()) role_.on_changed(process_, settings);
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(session->Assign(DrawAssignment(role_.chief.config, random->Next())));
      if (!process_->ghost()) role_.on_assigned(process_, /*by_hook=*/false);
      return absl::OkStatus();
    });
    LOG(INFO) << "result of the program's request: " << status;
    if (WasNotHeld(status) && !process_->ghost()) role_.on_wrong(process_, std::string(status.message()));
  }
  // Returns the last step of the last chief, if there was one.
  absl::optional<int64_t> last_step() const { return last_step_; }
  // Returns the step at which the program's hooks ended the run, if they did.
  absl::optional<int64_t> ended_at() const { return ended_at_; }

  absl::Status Run() {
    train::MonitoredSessionOptions options;
    options.session = SessionOptionsOf();
    if (role_.rules.patience > 0) {
      train::EarlyStoppingOptions stopping;
      stopping.patience = role_.rules.patience;
      stopping.every_n_steps = role_.rules.check_every;
      options.own_hooks.push_back(train::EarlyStoppingHook::Create(stopping).value());
    }
    if (!role_.rules.assign_at.empty() || role_.rules.assign_every > 0) {
      options.own_hooks.push_back(std::make_unique<AssigningHook>(process_, &role_));
    }
    if (!role_.rules.change_at.empty() || role_.rules.change_every > 0) {
      options.own_hooks.push_back(std::make_unique<ChangingHook>(process_, &role_));
    }
    auto counting = std::make_unique<CountingHook>(process_, &role_);
    const CountingHook* const counts = counting.get();
    options.own_hooks.push_back(std::move(counting));
    options.session.open = [this](const train::SessionOptions& session) { return Open(session); };
    const train::TrainOp op = options.session.op;
    return train::WithSession(
        train::MonitoredSession::Create(std::move(options)), [&](train::MonitoredSession& session) -> absl::Status {
          while (!session.ShouldStop()) {
            if (told_to_stop_ && role_.rules.on_stop == RunRules::OnStop::kLeaves) break;
            if (told_to_stop_ && role_.rules.on_stop == RunRules::OnStop::kRequestsEnd && session_ != nullptr) {
              const auto end = [](train::Session* own) { return own->RequestStop("a stop"); };
              LOG(INFO) << "result of the request after a stop: " << session_->Use(end);
            }
            RETURN_IF_ERROR(session.Run(op).status());
          }
          if (counts->ended_at() >= 0) ended_at_ = counts->ended_at();
          return absl::OkStatus();
        });
  }

 private:
  train::SessionOptions SessionOptionsOf() {
    train::SessionOptions options;
    options.op.spec = role_.chief.config;
    // The options pass their check only with an address of this machine. The simulated network uses role_.chief.listen
    // instead.
    options.listen = "127.0.0.1:2222";
    options.logdir = role_.chief.logdir;
    options.local_workers = 0;
    options.program = "simulated";
    options.change_settings = role_.chief.change_settings;
    options.predecessor_limit = role_.chief.lock_wait;
    options.stop = &stop_;
    options.clock = process_->clock();
    options.fs = process_->fs();
    return options;
  }

  absl::StatusOr<train::HeldSession> Open(const train::SessionOptions& options) {
    train::SessionMachine machine;
    machine.host = process_->host()->name;
    machine.build = SimulatedBuild();
    machine.executor = process_->executor();
    machine.old_version_bytes = role_.chief.old_version_bytes;
    machine.draw_session_id = [this] { return process_->world()->random()->Next(); };
    machine.draw_run_id = machine.draw_session_id;
    machine.serve = [this](const std::string&, Chief* chief) -> absl::StatusOr<ServedChief> {
      const std::string& listen = role_.chief.listen;
      const int64_t first_step = LastStepOf(*chief);
      const std::shared_ptr<SimulatedChiefServer> server(
          new SimulatedChiefServer(process_, chief, listen, &role_.chief.observer, role_.chief.many_workers),
          [this, chief](SimulatedChiefServer* ended) {
            last_step_ = LastStepOf(*chief);
            delete ended;
          });
      if (!server->listens()) return absl::UnavailableError(absl::StrCat("cannot listen on ", listen));
      if (!process_->ghost()) role_.chief.on_serving(process_, chief->generation(), first_step);
      return ServedChief{listen, 0, listen, server};
    };
    ASSIGN_OR_RETURN(auto session, train::ChiefSession::Open(options, machine));
    train::HeldSession held;
    held.gate = session.get();
    held.session = std::make_unique<SharedSession>(process_->world(), std::move(session), &session_);
    return held;
  }

  Process* const process_;
  const ProgramRole& role_;
  train::StopSignal stop_;
  SharedSession* session_ = nullptr;
  absl::optional<int64_t> last_step_;
  absl::optional<int64_t> ended_at_;
  bool told_to_stop_ = false;
};

}  // namespace

int RunProgram(Process* process, const ProgramRole& role) {
  World* const world = process->world();
  RunningProgram program(process, role);
  process->SetStop([world, process, &program] {
    world->scheduler()->At(world->now() + absl::ToInt64Nanoseconds(kStopLimit), [world, process] {
      world->End(process, Exit{kExitFailed, /*killed=*/false});
    });
    program.RequestStop();
  });
  process->SetActionHandler([&program](ProgramAction action) { program.OnAction(action); });
  absl::Status status = program.Run();
  LOG(INFO) << "the program: " << status;
  if (!process->ghost() && status.ok() && program.ended_at()) role.on_hooks_end(process, *program.ended_at());
  if (!process->ghost() && program.last_step()) role.chief.on_waited(process, status, *program.last_step());
  // Maps the status like Program.
  const bool hangs = absl::IsDeadlineExceeded(status);
  if (absl::IsOutOfRange(status)) status = absl::OkStatus();
  // Ends the process together with threads that are still writing.
  process->ExitNow(hangs ? kExitFailed : ExitCodeOf(status));
  process->ClearStop();
  return kExitFailed;
}

}  // namespace simulation
}  // namespace lockstep
