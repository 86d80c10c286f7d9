#include "lockstep/cli/launcher/resolved_task.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/flags/command_line.h"

namespace lockstep {
namespace {

constexpr int kMaxTasks = 1000000;
constexpr int kMaxWorkers = 1000;

constexpr std::pair<const char*, Role> kRoles[] = {{"chief", Role::kChief},
                                                   {"worker", Role::kWorker},
                                                   {"ps", Role::kParameterServer},
                                                   {"evaluator", Role::kEvaluator}};

std::string NameOf(Role role) {
  for (const auto& [name, known] : kRoles) {
    if (known == role) return name;
  }
  return "";
}

// Returns text such as "worker, task 3 of 8", or "chief" if it is the only task.
std::string PlaceOf(Role role, int index, int tasks) {
  if (role == Role::kChief && tasks == 1) return "chief";
  return absl::StrCat(NameOf(role), ", task ", index, tasks == 0 ? "" : absl::StrCat(" of ", tasks));
}

// Resolves the values one by one. Later values depend on earlier ones.
class Resolver {
 public:
  Resolver(const std::map<std::string, std::string>& flags, const EnvironmentMap& environment)
      : flags_(flags), environment_(environment) {}

  absl::StatusOr<ResolvedTask> Resolve() {
    RETURN_IF_ERROR(ReadLaunchers());
    RETURN_IF_ERROR(ChooseLead());
    RETURN_IF_ERROR(ResolvePlace());
    RETURN_IF_ERROR(ResolveMaster());
    if (task_.role == Role::kChief) RETURN_IF_ERROR(ResolveListen());
    RETURN_IF_ERROR(ResolveWorkers());
    ResolveName();
    RETURN_IF_ERROR(ResolveLogdir());
    return std::move(task_);
  }

 private:
  // Returns the value of a flag, or else of its environment variable.
  absl::optional<SourcedText> Given(const std::string& flag) const {
    const auto given = flags_.find(flag);
    if (given != flags_.end() && !given->second.empty()) {
      return SourcedText{given->second, absl::StrCat("--", flag)};
    }
    const std::string variable = CommandLine::VariableOf(flag);
    const auto found = environment_.find(variable);
    if (found == environment_.end() || found->second.empty()) return absl::nullopt;
    return SourcedText{found->second, variable};
  }
  absl::StatusOr<absl::optional<int>> GivenNumber(const std::string& flag, int minimum, int limit) const {
    const auto given = Given(flag);
    if (!given) return {absl::nullopt};
    int number = 0;
    if (absl::SimpleAtoi(given->text, &number) && number >= minimum && number < limit) return {number};
    return absl::InvalidArgumentError(absl::StrCat(given->source, " is \"", given->text,
                                                   "\", must be a whole number in [", minimum, ", ", limit, ")"));
  }
  void Show(const std::string& name, const std::string& value, const std::string& source) {
    task_.values.push_back({name, value, source});
  }

  absl::Status ReadLaunchers();
  absl::Status ChooseLead();
  absl::Status CheckAgreement(const LauncherTask& a, const LauncherTask& b) const;
  absl::Status ResolvePlace();
  absl::Status ResolveMaster();
  absl::optional<SourcedText> MasterOfLaunchers() const;
  absl::Status NoMaster() const;
  absl::Status ResolveListen();
  absl::Status ResolveWorkers();
  void ResolveName();
  absl::Status ResolveLogdir();

  const std::map<std::string, std::string>& flags_;
  const EnvironmentMap& environment_;
  // In order of precedence.
  std::vector<LauncherTask> launchers_;
  // The launcher that determines the role unless a flag does. Null if there is none.
  const LauncherTask* lead_ = nullptr;
  bool computes_ = true;
  // The index in the cluster; absent if unknown.
  absl::optional<int> index_;
  int tasks_ = 0;
  ResolvedTask task_;
};

absl::Status Resolver::ReadLaunchers() {
  const auto only = Given("launcher");
  std::vector<std::string> names = {"none"};
  for (const TaskLauncher launcher : TaskLaunchers()) {
    names.push_back(LauncherName(launcher));
    if (only && only->text != names.back()) continue;
    ASSIGN_OR_RETURN(const absl::optional<LauncherTask> task, ReadLauncher(launcher, environment_));
    if (task) launchers_.push_back(*task);
    if (!task && only) {
      return absl::InvalidArgumentError(
          absl::StrCat(only->source, " is ", only->text, ", but the environment has none of its variables"));
    }
  }
  if (!only || std::find(names.begin(), names.end(), only->text) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(only->source, " is \"", only->text, "\", must be one of ", absl::StrJoin(names, ", ")));
}

absl::Status Resolver::ChooseLead() {
  std::vector<const LauncherTask*> several;
  for (const LauncherTask& launcher : launchers_) {
    if (!launcher.has_role) continue;
    if (lead_ == nullptr || (lead_->tasks == 1 && launcher.tasks != 1)) lead_ = &launcher;
    if (launcher.tasks != 1) several.push_back(&launcher);
  }
  const bool place_is_given = Given("role") && Given("index");
  for (size_t i = 1; i < several.size() && !place_is_given; ++i) {
    RETURN_IF_ERROR(CheckAgreement(*several[0], *several[i]));
  }
  const LauncherTask* stated = nullptr;
  for (const LauncherTask& launcher : launchers_) {
    if (!launcher.chief || Given("master")) continue;
    if (stated != nullptr && stated->chief->text != launcher.chief->text) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the chief is at ", stated->chief->text, " (", stated->chief->source, ") or at ", launcher.chief->text, " (",
          launcher.chief->source, "); say which one with --master=grpc://HOST:PORT, or whom to follow with --launcher=",
          LauncherName(stated->launcher), " or --launcher=", LauncherName(launcher.launcher)));
    }
    stated = &launcher;
  }
  return absl::OkStatus();
}

absl::Status Resolver::CheckAgreement(const LauncherTask& a, const LauncherTask& b) const {
  // TF_CONFIG counts within a job, so its index and its number of tasks cannot be compared with another launcher's.
  const bool ranks = a.launcher != TaskLauncher::kTfConfig;
  const bool agree = (a.role == Role::kChief) == (b.role == Role::kChief) && (!ranks || a.index == b.index) &&
                     (!ranks || a.tasks == 0 || b.tasks == 0 || a.tasks == b.tasks);
  if (agree) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      a.source, " makes this process the ", PlaceOf(a.role, a.index, a.tasks), ", but ", b.source, " makes it the ",
      PlaceOf(b.role, b.index, b.tasks), "; say whom to follow with --launcher=", LauncherName(a.launcher),
      " or --launcher=", LauncherName(b.launcher)));
}

absl::Status Resolver::ResolvePlace() {
  ASSIGN_OR_RETURN(index_, GivenNumber("index", 0, kMaxTasks));
  ASSIGN_OR_RETURN(const absl::optional<int> tasks, GivenNumber("tasks", 1, kMaxTasks + 1));
  const bool index_is_given = index_.has_value();
  if (!index_ && lead_ != nullptr) index_ = lead_->index;
  tasks_ = tasks ? *tasks : lead_ != nullptr && !index_is_given ? lead_->tasks : 0;
  if (index_ && tasks_ != 0 && *index_ >= tasks_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the task's index is ", *index_, ", must be below the number of tasks, ", tasks_));
  }
  std::string source;
  if (const auto given = Given("role")) {
    const auto known =
        std::find_if(std::begin(kRoles), std::end(kRoles), [&](auto& r) { return r.first == given->text; });
    if (known == std::end(kRoles)) {
      return absl::InvalidArgumentError(
          absl::StrCat(given->source, " is \"", given->text, "\", must be chief, worker, ps or evaluator"));
    }
    task_.role = known->second;
    computes_ = false;
    source = given->source;
  } else if (index_is_given) {
    task_.role = *index_ == 0 ? Role::kChief : Role::kWorker;
    source = Given("index")->source;
  } else if (lead_ != nullptr) {
    task_.role = lead_->role;
    computes_ = lead_->computes;
    source = lead_->source;
  } else if (const auto master = Given("master")) {
    task_.role = Role::kWorker;
    source = absl::StrCat(master->source, ", and no launcher's variables");
  } else {
    tasks_ = 1;
    source = "no launcher's variables";
  }
  computes_ = computes_ && task_.role == Role::kChief;
  Show("role",
       absl::StrCat(index_ ? PlaceOf(task_.role, *index_, tasks_) : NameOf(task_.role), computes_ ? ", computes" : ""),
       source);
  return absl::OkStatus();
}

absl::optional<SourcedText> Resolver::MasterOfLaunchers() const {
  for (const LauncherTask& launcher : launchers_) {
    if (launcher.chief) return launcher.chief;
  }
  for (const LauncherTask& launcher : launchers_) {
    // A launcher that reports only a single task, or that gives this task a different role, does not know the chief of
    // the other tasks.
    const bool of_others = launcher.tasks == 1 || launcher.role != task_.role;
    if (launcher.derived_chief && !of_others) return launcher.derived_chief;
  }
  return absl::nullopt;
}

absl::Status Resolver::NoMaster() const {
  return absl::InvalidArgumentError(absl::StrCat(
      "the ", NameOf(task_.role), " (", task_.values[0].source,
      ") needs the chief's address, which no variable gives: ",
      "set --master or LOCKSTEP_MASTER for every task, to grpc://HOST:PORT or to file:PATH on a disk that all see"));
}

absl::Status Resolver::ResolveMaster() {
  auto master = Given("master");
  if (!master && tasks_ != 1) master = MasterOfLaunchers();
  if (!master) {
    const bool needed = task_.role == Role::kWorker || task_.role == Role::kParameterServer;
    return needed ? NoMaster() : absl::OkStatus();
  }
  task_.master = MasterOf(master->text);
  const auto address = ParseMasterAddress(task_.master);
  if (!address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(master->source, ": ", address.status().message()));
  }
  Show("chief", task_.master, master->source);
  return absl::OkStatus();
}

absl::Status Resolver::ResolveListen() {
  ASSIGN_OR_RETURN(const MasterAddress master, ParseMasterAddress(task_.master));
  task_.address_file = master.file;
  auto listen = Given("listen");
  if (!listen) {
    listen = SourcedText{"127.0.0.1:0", "no other task"};
    if (!master.file.empty()) listen = SourcedText{"0.0.0.0:0", "any port, which the file tells"};
    if (master.targets.size() == 1) listen = SourcedText{ListenAddressOf(master.targets[0]), "the chief's address"};
    if (master.targets.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the chief's address ", task_.master, " names several places; say with --listen where this chief listens"));
    }
  }
  task_.listen = listen->text;
  Show("listen", task_.listen, listen->source);
  auto host = Given("advertise");
  for (const LauncherTask& launcher : launchers_) {
    if (!host) host = launcher.host;
  }
  if (!host || task_.address_file.empty()) return absl::OkStatus();
  task_.advertise = host->text;
  Show("advertise", task_.advertise, host->source);
  return absl::OkStatus();
}

absl::Status Resolver::ResolveWorkers() {
  const bool is_chief = task_.role == Role::kChief;
  ASSIGN_OR_RETURN(const absl::optional<int> given, GivenNumber("workers", is_chief ? 0 : 1, kMaxWorkers));
  task_.workers = task_.role == Role::kWorker || computes_ ? 1 : 0;
  if (given) {
    task_.workers = *given;
    if (is_chief || *given > 1) Show("workers", absl::StrCat(*given), Given("workers")->source);
    return absl::OkStatus();
  }
  if (lead_ == nullptr || !lead_->processes || task_.workers == 0) return absl::OkStatus();
  task_.workers = 0;
  if (!absl::SimpleAtoi(lead_->processes->text, &task_.workers) || task_.workers >= kMaxWorkers) {
    return absl::InvalidArgumentError(absl::StrCat(lead_->processes->source, " must be below ", kMaxWorkers));
  }
  Show("workers", lead_->processes->text, lead_->processes->source);
  return absl::OkStatus();
}

void Resolver::ResolveName() {
  if (task_.workers == 0) return;
  auto name = Given("name");
  if (!name && lead_ != nullptr) name = lead_->name;
  if (!name && index_) name = SourcedText{absl::StrCat("worker-", *index_), "the task's index"};
  if (!name) return;
  task_.name = name->text;
  Show("name", task_.name, name->source);
}

absl::Status Resolver::ResolveLogdir() {
  auto logdir = Given("logdir");
  for (const LauncherTask& launcher : launchers_) {
    if (!logdir) logdir = launcher.logdir;
  }
  const bool matters = task_.role == Role::kChief || task_.role == Role::kEvaluator;
  if (!logdir && task_.role == Role::kEvaluator) {
    return absl::InvalidArgumentError("an evaluator needs the run's directory: --logdir, or TF_CONFIG's model_dir");
  }
  if (!logdir || !matters) return absl::OkStatus();
  task_.logdir = logdir->text;
  Show("logdir", task_.logdir, logdir->source);
  return absl::OkStatus();
}

}  // namespace

const std::vector<std::string>& TaskFlagNames() {
  static const auto& names = *new std::vector<std::string>{"role",   "launcher",  "index", "tasks",   "master",
                                                           "listen", "advertise", "name",  "workers", "logdir"};
  return names;
}

absl::StatusOr<ResolvedTask> ResolveTaskOf(const std::map<std::string, std::string>& flags,
                                           const EnvironmentMap& environment) {
  return Resolver(flags, environment).Resolve();
}

}  // namespace lockstep
