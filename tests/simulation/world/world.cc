#include "lockstep/tests/simulation/world/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace lockstep {
namespace simulation {
namespace {

World* current_world = nullptr;

class WorldSink : public google::LogSink {
 public:
  using google::LogSink::send;
  void send(google::LogSeverity severity, const char*, const char*, int, const google::LogMessageTime&,
            const char* message, size_t size) override {
    if (current_world != nullptr) current_world->OnLog(absl::string_view(message, size));
  }
};

}  // namespace

World* CurrentWorld() { return current_world; }

void CaptureLogs() {
  static auto* const sink = new WorldSink;
  FLAGS_stderrthreshold = google::GLOG_FATAL;
  google::InitGoogleLogging("simulate");
  for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity) google::SetLogDestination(severity, "");
  google::AddLogSink(sink);
}

World::World(const Options& options, StackPool* stacks)
    : random_(options.seed),
      transcript_(options.transcript_lines),
      on_log_(options.on_log),
      on_rename_(options.on_rename),
      on_renamed_(options.on_renamed),
      scheduler_(options.scheduler, &random_, stacks),
      network_(this) {
  current_world = this;
}

World::~World() {
  // Ends all processes, so that nothing leaks.
  for (const auto& process : processes_) {
    process->on_exit_ = nullptr;
    Kill(process.get());
  }
  current_world = nullptr;
}

Host* World::AddHost(std::string name) {
  hosts_.push_back(std::make_unique<Host>(std::move(name)));
  return hosts_.back().get();
}

Disk* World::AddDisk() {
  disks_.push_back(std::make_unique<Disk>());
  return disks_.back().get();
}

Process* World::Start(Host* host, std::string name, Disk* disk, Process::Main main,
                      std::function<void(Process*)> on_exit) {
  processes_.push_back(std::make_unique<Process>(this, host, std::move(name), disk));
  Process* const process = processes_.back().get();
  process->started_ = now();
  process->on_exit_ = std::move(on_exit);
  transcript_.Add(now(), process->name(), "starts on ", host->name);
  scheduler_.Start(process->group(), "main", [this, process, main = std::move(main)] {
    const int code = main(process);
    if (!process->alive()) return;
    process->exit_ = Exit{code, /*killed=*/false};
    transcript_.Add(now(), process->name(), "ends with exit code ", code);
    network_.OnProcessEnd(process, /*silently=*/false);
    scheduler_.Soon([process] {
      if (process->on_exit_) process->on_exit_(process);
    });
  });
  return process;
}

void World::End(Process* process, Exit exit) {
  if (!process->alive()) return;
  transcript_.Add(now(), process->name(), exit.killed ? "is killed" : "exits immediately");
  process->exit_ = exit;
  TaskGroup* const group = process->group();
  group->ghost = true;
  group->ghost_now = scheduler_.now();
  group->frozen = false;
  process->files_.EndLocks();
  network_.OnProcessEnd(process, /*silently=*/!process->host()->powered);
  scheduler_.WakeGroup(group);
  scheduler_.Start(group, "reaper", [process] {
    for (int i = 0; i < 2; ++i) process->HandleStop();
  });
  scheduler_.Drain(group);
  if (process->on_exit_) process->on_exit_(process);
}

void World::Freeze(Process* process) {
  if (!process->alive() || process->frozen()) return;
  transcript_.Add(now(), process->name(), "is frozen");
  process->group()->frozen = true;
  process->frozen_at = now();
}

void World::Thaw(Process* process) {
  if (!process->alive() || !process->frozen()) return;
  transcript_.Add(now(), process->name(), "wakes");
  process->group()->frozen = false;
  process->thawed_at = now();
  process->longest_freeze = std::max(process->longest_freeze, absl::Nanoseconds(now() - process->frozen_at));
}

void World::Signal(Process* process) {
  if (!process->alive()) return;
  transcript_.Add(now(), process->name(), "gets SIGTERM");
  process->OnSignal();
}

void World::Ask(Process* process, ProgramAction action) {
  static constexpr const char* kActions[] = {"requests the end", "requests the end with its next block",
                                             "sets variables", "changes settings"};
  if (!process->alive()) return;
  transcript_.Add(now(), process->name(), kActions[static_cast<int>(action)]);
  process->OnAction(action);
}

void World::CutPower(Host* host, Disk* disk) {
  transcript_.Add(now(), host->name, "loses its power");
  host->powered = false;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i]->host() == host) Kill(processes_[i].get());
  }
  if (disk != nullptr) disk->memory()->DropUnsyncedData([this](uint64_t n) { return random_.Below(n); });
}

void World::Sleep(absl::Duration duration) {
  const Instant end = now() + absl::ToInt64Nanoseconds(duration);
  while (now() < end && !scheduler_.WaitFor(nullptr, end)) {
    if (scheduler_.running()->ghost) return;
  }
}

void World::OnPoint(Point point) {
  if (scheduler_.running() == nullptr || scheduler_.running()->ghost) return;
  bool strikes = false;
  for (auto it = armed_.begin(); it != armed_.end();) {
    if (it->point != point || --it->left > 0) {
      ++it;
      continue;
    }
    scheduler_.Soon(std::move(it->strike));
    it = armed_.erase(it);
    strikes = true;
  }
  if (strikes) scheduler_.Yield();
}

void World::AtPoint(Point point, int64_t n, std::function<void()> strike) {
  armed_.push_back({point, n, std::move(strike)});
}

void World::OnLog(absl::string_view line) {
  const TaskGroup* const group = scheduler_.running();
  if (group == nullptr || group->ghost) return;
  transcript_.Add(now(), group->name, "| ", line);
  if (!on_log_) return;
  for (const auto& process : processes_) {
    if (process->group() == group) on_log_(process.get(), line);
  }
}

}  // namespace simulation
}  // namespace lockstep
