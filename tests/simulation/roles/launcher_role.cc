#include <signal.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/cli/launcher/launcher.h"
#include "lockstep/tests/simulation/roles/roles.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {

const char kPortFile[] = "/run/port";

namespace {

// The children of the launcher process.
class SimulatedProcessTable : public ProcessTable {
 public:
  SimulatedProcessTable(Process* parent, const LauncherRole& role) : parent_(parent), role_(role) {}

  absl::StatusOr<int> Start(const ProcessSpec& spec) override {
    if (parent_->ghost()) return absl::UnavailableError("the process was killed");
    children_[++last_pid_] = role_.start(spec.command);
    return last_pid_;
  }
  void Signal(int pid, int signal) override {
    World* const world = parent_->world();
    Process* const child = children_.at(pid);
    if (parent_->ghost()) return;
    world->scheduler()->Soon([world, child, signal] { signal == SIGKILL ? world->Kill(child) : world->Signal(child); });
  }
  absl::optional<ProcessExit> NextExit() override {
    for (const auto& [pid, child] : children_) {
      if (child->alive()) continue;
      ProcessExit exit;
      exit.pid = pid;
      exit.exit_code = child->exit()->code;
      exit.signal = child->exit()->killed ? SIGKILL : 0;
      children_.erase(pid);
      return exit;
    }
    return absl::nullopt;
  }

 private:
  Process* const parent_;
  const LauncherRole& role_;
  int last_pid_ = 0;
  std::map<int, Process*> children_;
};

}  // namespace

int RunLauncher(Process* process, const LauncherRole& role) {
  World* const world = process->world();
  SimulatedProcessTable processes(process, role);
  Launcher::Options options;
  options.clock = process->clock();
  options.processes = &processes;
  options.fs = process->fs();
  options.chief_command = [](const std::string& listen) { return std::vector<std::string>{"chief", listen}; };
  options.worker_command = [](int worker, const std::string& master) {
    return std::vector<std::string>{"worker", absl::StrCat(worker), master};
  };
  options.workers = role.workers;
  options.port_file = kPortFile;
  options.log_directory = "/run";
  options.say = [](const std::string& line) { LOG(INFO) << line; };
  Launcher launcher(options);
  int signals = 0;
  process->SetStop([&signals, process, world] {
    ++signals;
    world->scheduler()->WakeGroup(process->group());
  });
  const absl::Status started = launcher.Start();
  int handled = 0;
  while (started.ok() && !launcher.outcome() && !process->ghost()) {
    if (handled < signals) {
      ++handled;
      launcher.OnSignal(SIGTERM);
    }
    launcher.Poll();
    if (launcher.outcome()) break;
    const absl::Duration wait = launcher.next_poll() - process->clock()->Now();
    // A real launcher receives a signal when a child ends. This one polls.
    world->Sleep(std::max(absl::Milliseconds(1), std::min(wait, absl::Milliseconds(10))));
  }
  process->ClearStop();
  if (!started.ok()) LOG(ERROR) << started;
  if (!launcher.outcome()) return 1;
  LOG(INFO) << "the run ends: " << launcher.outcome()->message;
  return launcher.outcome()->exit_code;
}

}  // namespace simulation
}  // namespace lockstep
