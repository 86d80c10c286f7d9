#include "lockstep/tests/simulation/life.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/tests/simulation/faults.h"

namespace lockstep {
namespace simulation {
namespace {

constexpr char kLogdir[] = "/logdir";
constexpr char kAddressFile[] = "/run/address";
// The longest time from Calm to the end of a life.
constexpr absl::Duration kCalmLimit = absl::Seconds(150);
// Workers that still look for a chief this long after the end of the run are stopped. A worker that never got an answer
// does not know the configured limit, and would wait ten minutes.
constexpr absl::Duration kLookingLimit = absl::Seconds(65);
// The number of steps from the beginning of a hang to the next one.
constexpr int64_t kStepsBetweenHangs = 50;
// The least speed of a run with a slow worker, as a fraction of its speed without that worker (docs/sync.md).
constexpr double kLeastSpeed = 0.95;

World::Options WorldOptions(const Plan& plan, size_t transcript_lines,
                            std::function<void(const Process*, absl::string_view)> on_log,
                            std::function<void(const Process*, absl::string_view)> on_rename,
                            std::function<void(const Process*, absl::string_view)> on_renamed) {
  World::Options options;
  options.seed = plan.seed;
  options.scheduler = plan.scheduler;
  options.transcript_lines = transcript_lines;
  options.on_log = std::move(on_log);
  options.on_rename = std::move(on_rename);
  options.on_renamed = std::move(on_renamed);
  return options;
}

}  // namespace

Life::Life(const Plan& plan, size_t transcript_lines, StackPool* stacks)
    : plan_(plan),
      world_(WorldOptions(
                 plan, transcript_lines,
                 [this](const Process* process, absl::string_view line) { judge_.OnLog(process, line); },
                 [this](const Process* process, absl::string_view names) { judge_.OnRename(process, names); },
                 [this](const Process* process, absl::string_view name) { judge_.OnRenamed(process, name); }),
             stacks),
      disk_(world_.AddDisk()),
      judge_(&plan_, &world_, disk_),
      hang_step_(plan.slow_worker ? plan.slow_worker->hang_step : -1),
      config_(plan.config) {
  CHECK(disk_->memory()->CreateDirectory("/run").ok());
  hosts_.push_back(world_.AddHost("chief-host"));
  for (int i = 0; i < plan_.workers && !plan_.one_host; ++i) {
    hosts_.push_back(world_.AddHost(absl::StrCat("host-", i)));
  }
  for (Host* const host : hosts_) host->wall_error = random()->Between(-absl::Seconds(100), absl::Seconds(100));
}

Life::~Life() = default;

std::string Life::Run() {
  if (plan_.launcher) {
    StartLauncher();
  } else {
    StartChief();
    // A slow worker, the last one, starts first, so that it takes slots of the first step.
    for (int i = 0; i < plan_.workers; ++i) StartWorker(plan_.slow_worker ? plan_.workers - 1 - i : i);
  }
  for (const Plan::Fault& fault : plan_.faults) Arm(fault);
  for (int64_t i = 0; i < plan_.deaf_peers; ++i) {
    const absl::Duration at = random()->Between(absl::Milliseconds(1), absl::Milliseconds(200));
    world_.scheduler()->At(absl::ToInt64Nanoseconds(at), [this] { StartDeaf(); });
  }
  world_.scheduler()->At(plan_.quiet_at, [this] { Calm(); });
  Watch();
  const Instant limit = plan_.quiet_at + absl::ToInt64Nanoseconds(kCalmLimit);
  const auto end = world_.scheduler()->Run([this] { return IsOver(); }, limit);
  switch (end) {
    case LifeScheduler::End::kDone:
      break;
    case LifeScheduler::End::kStuck:
      judge_.Fail(absl::StrCat("nothing can happen any more:\n", world_.scheduler()->Describe()));
      break;
    case LifeScheduler::End::kTooLong:
      judge_.Fail(absl::StrCat("the run does not end:\n", world_.scheduler()->Describe()));
      break;
    case LifeScheduler::End::kTooManyTurns:
      judge_.Fail(absl::StrCat("the processes run in circles:\n", world_.scheduler()->Describe()));
      break;
  }
  if (judge_.failure().empty()) judge_.CheckDisk();
  return judge_.failure();
}

bool Life::IsOver() {
  if (!judge_.failure().empty()) return true;
  if (!judge_.finished()) return false;
  const auto& processes = world_.processes();
  while (ended_ < processes.size() && !processes[ended_]->alive()) ++ended_;
  return ended_ == processes.size();
}

void Life::Arm(const Plan::Fault& fault) {
  const FaultKind& kind = Faults()[fault.kind];
  const auto strike = [this, &kind] {
    if (calm_) return;
    world_.transcript()->Add(world_.now(), "FAULT", kind.name);
    judge_.OnDisturbance();
    kind.strike(this);
  };
  switch (fault.trigger.kind) {
    case Trigger::kTime:
      return world_.scheduler()->At(fault.trigger.time, strike);
    case Trigger::kTurn:
      return world_.scheduler()->AtTurn(fault.trigger.turn, strike);
    case Trigger::kPoint:
      return world_.AtPoint(fault.trigger.point, fault.trigger.nth, strike);
  }
}

void Life::After(absl::Duration delay, std::function<void()> undo) {
  auto shared = std::make_shared<std::function<void()>>([this, undo = std::move(undo)] {
    judge_.OnDisturbance();
    undo();
  });
  undos_.push_back(shared);
  world_.scheduler()->At(world_.now() + absl::ToInt64Nanoseconds(delay), [shared] {
    if (const auto action = std::exchange(*shared, nullptr)) action();
  });
}

void Life::UnlessCalm(absl::Duration delay, std::function<void()> action) {
  world_.scheduler()->At(world_.now() + absl::ToInt64Nanoseconds(delay), [this, action = std::move(action)] {
    if (!calm_) action();
  });
}

void Life::Calm() {
  world_.transcript()->Add(world_.now(), "FAULT", "all is calm from now on");
  calm_ = true;
  kills_after_assignment_ = false;
  world_.Disarm();
  for (const auto& undo : undos_) {
    if (const auto action = std::exchange(*undo, nullptr)) action();
  }
  undos_.clear();
  judge_.OnCalm();
  // At least one worker must be present.
  if (workers().empty() && !judge_.finished() && !plan_.launcher) {
    const bool pending = std::any_of(workers_.begin(), workers_.end(), [](const auto& w) { return w.pending; });
    if (!pending) AddWorker();
  }
}

void Life::Watch() {
  world_.scheduler()->At(world_.now() + absl::ToInt64Nanoseconds(Judge::kWatchPeriod), [this] {
    judge_.Watch(chief_, workers());
    Watch();
  });
}

void Life::Later(std::function<void()> action) {
  const absl::Duration delay = random()->Chance(0.5) ? random()->Between(absl::Milliseconds(1), absl::Milliseconds(100))
                                                     : random()->Between(absl::Milliseconds(1), absl::Seconds(2));
  world_.scheduler()->At(world_.now() + absl::ToInt64Nanoseconds(delay), std::move(action));
}

std::vector<Process*> Life::workers() const {
  std::vector<Process*> running;
  for (const WorkerSlot& worker : workers_) {
    if (worker.process != nullptr) running.push_back(worker.process);
  }
  return running;
}

Process* Life::AnyWorker() {
  const std::vector<Process*> running = workers();
  return running.empty() ? nullptr : random()->Pick(running);
}

Host* Life::HostOfWorker(int index) const {
  return plan_.one_host ? hosts_[0] : hosts_[1 + index % (hosts_.size() - 1)];
}

std::string Life::Master() const {
  if (plan_.address_file) return absl::StrCat("file:", kAddressFile);
  return "grpc://chief-host:2222,grpc://other-host:2222";
}

ChiefRole Life::NewChiefRole(const std::string& listen) {
  ChiefRole role;
  role.config = config_;
  role.change_settings = changed_;
  role.old_version_bytes = plan_.old_version_bytes;
  role.many_workers = plan_.many_workers;
  role.logdir = kLogdir;
  role.listen = listen;
  if (plan_.address_file) role.address_file = kAddressFile;
  role.on_serving = [this, config = config_](Process* chief, int64_t generation, int64_t step) {
    judge_.OnServing(chief, generation, step, config);
  };
  role.observer.on_reply = [this](Process* chief, const std::shared_ptr<Call>& stream, const StepReplyFrame& reply) {
    judge_.OnReply(chief, stream, reply);
  };
  role.observer.on_frame = [this](const std::shared_ptr<Call>& stream, const StepFrame& frame) {
    judge_.OnFrame(stream, frame);
  };
  role.observer.on_contribution = [this](Process*, const Process* worker, Instant at) {
    judge_.OnContribution(worker, at);
  };
  role.observer.on_open_session = [this](const std::string& request) { open_session_ = request; };
  role.on_waited = [this](Process* chief, const absl::Status& status, int64_t step) {
    if (!chief->ghost()) judge_.OnWaited(chief, status, step);
  };
  return role;
}

Process* Life::StartChiefProcess(Host* host, const std::string& name, ChiefRole role) {
  const auto on_exit = [this](Process* process) { OnChiefExit(process); };
  judge_.OnDisturbance();
  if (!plan_.rules.followed) {
    return world_.Start(
        host, name, disk_, [role = std::move(role)](Process* process) { return RunChief(process, role); }, on_exit);
  }
  ProgramRole program;
  program.chief = std::move(role);
  program.rules = plan_.rules;
  program.on_read = [this](Process* reader, int64_t step, absl::Span<const train::NamedTensor> values) {
    judge_.OnRead(reader, step, values);
  };
  program.on_hook_assigns = [this](Process* chief, const RunChanges::Assignment& assignment) {
    judge_.OnHookAssigns(chief, assignment);
  };
  program.on_hook_changes = [this](Process* chief, int64_t step, const RunChanges::Settings& settings) {
    judge_.OnHookChanges(chief, step, settings);
  };
  program.on_hook_failed = [this](Process* chief) { judge_.OnHookFailed(chief); };
  program.on_assigned = [this](Process* chief, bool by_hook) {
    judge_.OnAssigned(chief, by_hook);
    if (!by_hook || !std::exchange(kills_after_assignment_, false)) return;
    world_.scheduler()->At(world_.now(), [this, chief] { world_.Kill(chief); });
  };
  program.on_changed = [this](Process* chief, const RunChanges::Settings& settings) {
    judge_.OnChanged(chief, settings);
  };
  program.on_hooks_see = [this](Process* chief, int64_t step) { judge_.OnHooksSee(chief, step); };
  program.on_hooks_end = [this](Process* chief, int64_t step) { judge_.OnHooksEnd(chief, step); };
  program.on_wrong = [this](Process* chief, const std::string& what) {
    judge_.Fail(absl::StrCat(chief->name(), ": ", what));
  };
  return world_.Start(
      host, name, disk_, [program = std::move(program)](Process* process) { return RunProgram(process, program); },
      on_exit);
}

void Life::ChangeSettings() {
  auto* const rate = config_.mutable_optimizer()->mutable_learning_rate();
  rate->set_initial(rate->initial() * 0.5f);
  changed_ = true;
}

void Life::StartChief() {
  chief_pending_ = false;
  if (judge_.finished() || chief_ != nullptr) return;
  if (!hosts_[0]->powered) {
    chief_pending_ = true;
    return Later([this] { StartChief(); });
  }
  ChiefRole role = NewChiefRole("chief-host:2222");
  if (random()->Chance(0.3)) role.lock_wait = absl::Seconds(5);
  chief_ = StartChiefProcess(hosts_[0], "chief", std::move(role));
}

void Life::OnChiefExit(Process* process) {
  judge_.OnChiefExit(process);
  if (judge_.finished()) {
    for (Process* const worker : workers()) worker->hangs_until = 0;
    world_.scheduler()->At(world_.now() + absl::ToInt64Nanoseconds(kLookingLimit), [this] {
      for (const auto& late : world_.processes()) world_.Signal(late.get());
    });
  }
  if (chief_ != process) return;
  chief_ = nullptr;
  if (plan_.launcher || judge_.finished()) return;
  chief_pending_ = true;
  Later([this] { StartChief(); });
}

void Life::StartOtherChief(bool takes_over, absl::optional<int64_t> replaces) {
  judge_.OnRival(takes_over);
  Host* const host = takes_over && !plan_.one_host ? world_.AddHost("other-host") : hosts_[0];
  // Workers find a chief that takes over at a second address, or through the address file.
  ChiefRole role = NewChiefRole(takes_over ? "other-host:2222" : absl::StrCat("chief-host:", 3000 + other_chiefs_));
  if (!takes_over) role.address_file.clear();
  role.replaces = replaces;
  Process* const process = StartChiefProcess(host, absl::StrCat("chief-", ++other_chiefs_ + 1), std::move(role));
  // Stops the surplus chief after some time. If a second chief found no other, it may now own the run; the first chief
  // then notices only at its next save that it has lost the directory.
  Process* const one_too_many = takes_over ? chief_ : process;
  if (takes_over) chief_ = process;
  After(random()->Between(absl::Milliseconds(1), absl::Seconds(2)),
        [this, one_too_many] { world_.Signal(one_too_many); });
}

Process* Life::StartWorkerProcess(int index, const std::string& master) {
  WorkerRole role;
  role.name = absl::StrCat("worker-", index);
  role.master = master;
  role.startup_delay_steps = index < plan_.workers ? plan_.startup_delays[index] : 0;
  role.slot_time = plan_.slot_times[index % plan_.slot_times.size()];
  role.least_part = plan_.least_part;
  role.steps_grow = !plan_.config.training().has_first_arrivals();
  role.rules = plan_.rules;
  const bool is_slow = plan_.slow_worker && index == plan_.workers - 1;
  role.on_slot = [this, is_slow](Process* worker, const SlotKey& key, VariableValues values) {
    judge_.OnSlot(worker, key, values);
    if (is_slow) Hang(worker, key.step);
  };
  role.on_ended = [this](Process* worker, const absl::Status& status) { judge_.OnWorkerEnded(worker, status); };
  role.on_read = [this](Process* reader, int64_t step, absl::Span<const train::NamedTensor> values) {
    judge_.OnRead(reader, step, values);
  };
  role.on_wrong = [this](Process* worker, const std::string& what) {
    judge_.Fail(absl::StrCat(worker->name(), ": ", what));
  };
  const auto run = plan_.worker_programs && index % 2 == 0 ? RunWorkerProgram : RunWorker;
  Process* const process = world_.Start(
      HostOfWorker(index), role.name, disk_, [role, run](Process* process) { return run(process, role); },
      [this, index](Process* process) { OnWorkerExit(index, process); });
  judge_.OnStartupDelay(process, *role.startup_delay_steps);
  judge_.OnDisturbance();
  if (static_cast<size_t>(index) >= workers_.size()) workers_.resize(index + 1);
  workers_[index] = WorkerSlot();
  workers_[index].process = process;
  return process;
}

void Life::Hang(Process* worker, int64_t step) {
  if (hang_step_ < 0 || step < hang_step_) return;
  hang_step_ = step + kStepsBetweenHangs;
  worker->hangs_until = world_.now() + absl::ToInt64Nanoseconds(plan_.slow_worker->hang_time);
}

void Life::StartWorker(int index) {
  if (judge_.finished()) return;
  if (!HostOfWorker(index)->powered) return Later([this, index] { StartWorker(index); });
  StartWorkerProcess(index, Master());
}

void Life::AddWorker() {
  if (plan_.launcher || judge_.finished()) return;
  StartWorker(static_cast<int>(workers_.size()));
}

void Life::Retire(Process* process) {
  for (WorkerSlot& worker : workers_) {
    if (worker.process == process) worker.retired = true;
  }
  world_.Signal(process);
}

void Life::OnWorkerExit(int index, Process* process) {
  judge_.OnWorkerExit(process);
  WorkerSlot& worker = workers_[index];
  if (worker.process != process) return;
  worker.process = nullptr;
  const Exit exit = *process->exit();
  if (plan_.launcher || judge_.finished() || (!exit.killed && exit.code == kExitDone)) return;
  if (worker.retired && !calm_) return;
  worker.pending = true;
  Later([this, index] { StartWorker(index); });
}

void Life::StartLauncher() {
  if (judge_.finished() || launcher_ != nullptr) return;
  if (!hosts_[0]->powered) return Later([this] { StartLauncher(); });
  LauncherRole role;
  role.workers = plan_.workers;
  role.start = [this](const std::vector<std::string>& command) { return StartChild(command); };
  launcher_ = world_.Start(
      hosts_[0], "launcher", disk_, [role](Process* process) { return RunLauncher(process, role); },
      [this](Process* process) { OnLauncherExit(process); });
}

Process* Life::StartChild(const std::vector<std::string>& command) {
  if (command[0] == "worker") {
    int index = 0;
    CHECK(absl::SimpleAtoi(command[1], &index));
    return StartWorkerProcess(index, command[2]);
  }
  ChiefRole role = NewChiefRole(command[1]);
  role.port_file = kPortFile;
  // The value that `lockstep run` sets.
  role.lock_wait = absl::Seconds(60);
  chief_ = StartChiefProcess(hosts_[0], "chief", std::move(role));
  return chief_;
}

void Life::OnLauncherExit(Process* process) {
  judge_.OnLauncherExit(process);
  launcher_ = nullptr;
  // The launcher's chief may still be running when the next launcher starts another.
  if (chief_ != nullptr) judge_.OnRival(/*takes_over=*/false);
  // Does what PR_SET_PDEATHSIG does.
  for (const auto& child : world_.processes()) {
    if (child.get() == chief_) world_.Signal(child.get());
  }
  for (Process* const worker : workers()) world_.Signal(worker);
  if (!judge_.finished()) Later([this] { StartLauncher(); });
}

void Life::StartStranger() {
  StrangerRole role;
  role.target = "chief-host:2222";
  role.generation = [this] { return judge_.generation(); };
  world_.Start(random()->Pick(hosts_), absl::StrCat("stranger-", strangers_++), disk_,
               [role](Process* process) { return RunStranger(process, role); });
}

void Life::StartImpostor() {
  ImpostorRole role;
  role.target = "chief-host:2222";
  role.open_session = [this] { return open_session_; };
  world_.Start(random()->Pick(hosts_), absl::StrCat("impostor-", strangers_++), disk_,
               [role](Process* process) { return RunImpostor(process, role); });
}

void Life::StartDeaf() {
  DeafRole role;
  role.peer.target = "chief-host:2222";
  role.peer.open_session = [this] { return open_session_; };
  role.on_over = [this](std::shared_ptr<Call> call, std::shared_ptr<Call> successor) {
    judge_.OnStreamOver(std::move(call), std::move(successor));
  };
  world_.Start(random()->Pick(hosts_), absl::StrCat("deaf-", strangers_++), disk_,
               [role](Process* process) { return RunDeaf(process, role); });
}

void Life::StartReader() {
  if (plan_.launcher) return;
  ReaderRole role;
  role.master = Master();
  role.on_read = [this](Process* reader, int64_t step, absl::Span<const train::NamedTensor> values) {
    judge_.OnRead(reader, step, values);
  };
  world_.Start(random()->Pick(hosts_), absl::StrCat("reader-", readers_++), disk_,
               [role](Process* process) { return RunReader(process, role); });
}

void Life::CutPower(Host* host) {
  // The machine's own disk keeps only synced data. A network disk has its own power supply.
  if (host == hosts_[0]) {
    judge_.OnPowerCut();
    // A chief on another host could not know that its writes are lost.
    if (chief_ != nullptr && chief_->host() != host) world_.Kill(chief_);
    world_.CutPower(host, disk_);
  } else {
    world_.CutPower(host, nullptr);
  }
  After(random()->Between(absl::Milliseconds(1), absl::Seconds(2)), [this, host] {
    world_.transcript()->Add(world_.now(), host->name, "has power again");
    host->powered = true;
  });
}

std::string RunLife(const Plan& plan, size_t transcript_lines, StackPool* stacks, std::string* transcript) {
  absl::Duration without = absl::InfiniteDuration();
  if (plan.slow_worker) {
    Plan others = plan;
    others.slow_worker.reset();
    --others.workers;
    Life life(others, transcript_lines, stacks);
    const std::string failure = life.Run();
    *transcript = life.TranscriptText();
    if (!failure.empty()) return absl::StrCat("without the slow worker: ", failure);
    without = life.training_time();
  }
  Life life(plan, transcript_lines, stacks);
  const std::string failure = life.Run();
  *transcript = life.TranscriptText();
  if (!failure.empty() || life.training_time() * kLeastSpeed <= without) return failure;
  return absl::StrCat(plan.steps, " steps take ", absl::FormatDuration(life.training_time()),
                      " with the slow worker and ", absl::FormatDuration(without), " without it");
}

}  // namespace simulation
}  // namespace lockstep
