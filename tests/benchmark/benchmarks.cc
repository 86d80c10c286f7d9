// Runs all benchmarks. `lockstep bench --help` lists them.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/tests/benchmark/kernel_benchmark.h"
#include "lockstep/tests/benchmark/lifecycle_benchmark.h"
#include "lockstep/tests/benchmark/model_benchmark.h"
#include "lockstep/tests/benchmark/processor.h"
#include "lockstep/tests/benchmark/recovery_benchmark.h"
#include "lockstep/tests/benchmark/spread.h"
#include "lockstep/tests/benchmark/step_benchmark.h"
#include "lockstep/tests/benchmark/straggler_benchmark.h"
#include "lockstep/tests/benchmark/training_benchmark.h"
#include "lockstep/tests/benchmark/watch/watch_benchmark.h"

namespace lockstep {
namespace benchmark {
namespace {

struct Flags {
  std::string only;
  std::string json;
  std::string plot;
  std::string plot_with;
  std::string plot_script;
  std::string sizes = "4,4096,1048576,2678824,67108864,104857600";
  std::string workers = "1,2";
  std::string wires = "tcp,unix,shared";
  double seconds = 5;
  bool naive = true;
  int step_threads = 2;
  bool alone = false;
  bool quick = false;
  bool strict = false;
  bool peers = false;
  bool tls = false;
  bool markdown = false;
  bool kernel_parts = false;
  Peers peer_paths;
};

// The groups, in the order in which they are measured. Some groups fork processes. This must not happen after
// "stragglers", which starts many threads.
const std::vector<std::string> kGroups = {"step",      "frozen", "training", "saving",   "start",   "memory",
                                          "chief_cpu", "tls",    "recovery", "watching", "kernels", "stragglers"};
const std::vector<std::string> kPeerGroups = {"peers", "torch", "python", "models", "products"};

bool ParseNumbers(const std::string& text, std::vector<int64_t>* out) {
  for (const auto& word : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 1) return false;
    out->push_back(number);
  }
  return true;
}

absl::Status ParseWires(const std::string& text, std::vector<StepBenchmarkOptions::Wire>* out) {
  using Wire = StepBenchmarkOptions::Wire;
  out->clear();
  for (const auto& word : absl::StrSplit(text, ',')) {
    if (word != "tcp" && word != "unix" && word != "shared") {
      return absl::InvalidArgumentError(absl::StrCat("--wires takes tcp, unix and shared, not ", word));
    }
    out->push_back(word == "tcp" ? Wire::kTcp : word == "unix" ? Wire::kUnix : Wire::kSharedMemory);
  }
  return absl::OkStatus();
}

absl::StatusOr<StepBenchmarkOptions> StepOptions(const Flags& flags, const std::string& directory) {
  StepBenchmarkOptions step;
  std::vector<int64_t> workers;
  if (!ParseNumbers(flags.sizes, &step.sizes) || !ParseNumbers(flags.workers, &workers)) {
    return absl::InvalidArgumentError("--sizes and --workers take positive numbers separated by commas");
  }
  step.workers.assign(workers.begin(), workers.end());
  RETURN_IF_ERROR(ParseWires(flags.wires, &step.wires));
  step.seconds = flags.seconds;
  step.naive = flags.naive;
  step.step_threads = flags.step_threads;
  step.alone = flags.alone;
  step.directory = directory;
  if (flags.quick) step.sizes = {4096, 1 << 20};
  return step;
}

TrainingBenchmarkOptions TrainingOptions(const Flags& flags, const std::string& directory) {
  TrainingBenchmarkOptions training;
  training.share_memory = absl::StrContains(flags.wires, "shared");
  training.seconds = flags.seconds;
  training.directory = directory;
  if (flags.quick) {
    training.batches = {64};
    training.workers = {1, 2};
  }
  return training;
}

std::string Environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

Programs ProgramsUnderTest() { return {Environment("LOCKSTEP_CHIEF_BINARY"), Environment("LOCKSTEP_WORKER_BINARY")}; }

LifecycleBenchmarkOptions LifecycleOptions(const Flags& flags, const std::string& directory) {
  LifecycleBenchmarkOptions lifecycle;
  lifecycle.programs = ProgramsUnderTest();
  lifecycle.directory = directory;
  if (flags.quick) {
    lifecycle.repetitions = 2;
    lifecycle.between_saves = absl::Seconds(2);
    lifecycle.saved_units = 512;
    lifecycle.memory_bytes = 4 << 20;
  }
  return lifecycle;
}

RecoveryBenchmarkOptions RecoveryOptions(const Flags& flags, const std::string& directory) {
  RecoveryBenchmarkOptions recovery;
  recovery.programs = ProgramsUnderTest();
  recovery.supervisor = Environment("LOCKSTEP_BINARY");
  recovery.directory = directory;
  if (flags.quick) recovery.repetitions = 1;
  return recovery;
}

WatchBenchmarkOptions WatchOptions(const Flags& flags, const std::string& directory) {
  WatchBenchmarkOptions watching;
  watching.page_program = Environment("LOCKSTEP_BINARY");
  watching.directory = directory;
  watching.seconds = flags.seconds;
  if (flags.quick) watching.rounds = 1;
  return watching;
}

KernelBenchmarkOptions KernelOptions(const Flags& flags) {
  KernelBenchmarkOptions kernels;
  kernels.seconds = flags.seconds;
  kernels.parts = flags.kernel_parts;
  if (flags.quick) kernels.batches = {64};
  return kernels;
}

ModelBenchmarkOptions ModelOptions(const Flags& flags, const std::string& directory) {
  ModelBenchmarkOptions models;
  models.seconds = flags.seconds;
  models.directory = directory;
  if (flags.quick) models.batches = {64};
  return models;
}

absl::Status MeasurePeerGroup(const std::string& group, const Flags& flags, const std::string& directory,
                              Report* report) {
  if (group == "torch") return MeasureTorch(TrainingOptions(flags, directory), flags.peer_paths, report);
  if (group == "python") {
    ASSIGN_OR_RETURN(StepBenchmarkOptions step, StepOptions(flags, directory));
    step.sizes = {4, 2678824};
    return MeasurePython(step, flags.peer_paths, report);
  }
  if (group == "models") return MeasureModels(ModelOptions(flags, directory), flags.peer_paths, report);
  if (group == "products") return MeasureProducts(ModelOptions(flags, directory), flags.peer_paths, report);
  return MeasurePeers(TrainingOptions(flags, directory), flags.peer_paths, report);
}

absl::Status MeasureGroup(const std::string& group, const Flags& flags, const std::string& directory, Report* report) {
  if (flags.peers) return MeasurePeerGroup(group, flags, directory, report);
  ASSIGN_OR_RETURN(StepBenchmarkOptions step, StepOptions(flags, directory));
  const LifecycleBenchmarkOptions lifecycle = LifecycleOptions(flags, directory);
  if (group == "step") return MeasureSteps(step, report);
  if (group == "training") return MeasureTraining(TrainingOptions(flags, directory), report);
  if (group == "saving") return MeasureSaving(lifecycle, report);
  if (group == "start") return MeasureStart(lifecycle, report);
  if (group == "memory") return MeasureMemory(lifecycle, report);
  if (group == "recovery") return MeasureRecovery(RecoveryOptions(flags, directory), report);
  if (group == "watching") return MeasureWatching(WatchOptions(flags, directory), report);
  if (group == "kernels") {
    MeasureKernels(KernelOptions(flags), report);
    return absl::OkStatus();
  }
  if (group == "stragglers") {
    StragglerBenchmarkOptions stragglers;
    stragglers.seconds = 2 * flags.seconds;
    return MeasureStragglers(stragglers, report);
  }
  step.sizes = {4096, 2678824};
  if (group == "frozen") return MeasureFrozen(step, report);
  if (group == "tls") return MeasureTls(step, report);
  step.workers = {1, 2, 4, 8, 16};
  return MeasureChiefCpu(step, report);
}

absl::Status MeasureAll(const Flags& flags, const std::string& directory, Report* report) {
  const std::vector<std::string>& groups = flags.peers ? kPeerGroups : kGroups;
  std::vector<std::string> wanted = absl::StrSplit(flags.only, ',', absl::SkipEmpty());
  if (flags.tls) wanted.push_back("tls");
  for (const std::string& word : wanted) {
    if (std::find(groups.begin(), groups.end(), word) == groups.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--only: no group \"", word, "\"; there are ", absl::StrJoin(groups, ", ")));
    }
  }
  for (const std::string& group : groups) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), group) == wanted.end()) continue;
    std::cerr << "measuring " << group << std::endl;
    RETURN_IF_ERROR(MeasureGroup(group, flags, directory, report));
  }
  return absl::OkStatus();
}

// Creates the files for the measurements, measures, and removes the files. They stay after a failure, because its
// message may refer to a log.
absl::Status MeasureInDirectory(const Flags& flags, Report* report) {
  char directory[] = "/tmp/lockstep-bench-XXXXXX";
  if (mkdtemp(directory) == nullptr) return absl::UnavailableError("cannot make a directory in /tmp");
  report->set_machine(MachineText());
  double load = 0;
  if (getloadavg(&load, 1) == 1) report->set_load_before(load);
  const absl::Status status = MeasureAll(flags, directory, report);
  std::error_code ignored;
  if (status.ok()) std::filesystem::remove_all(directory, ignored);
  return status;
}

// Calls the script that draws the plot from the JSON.
absl::Status DrawPlot(const Flags& flags) {
  std::vector<std::string> words = {flags.plot_script, flags.json};
  for (const auto& report : absl::StrSplit(flags.plot_with, ',', absl::SkipEmpty())) words.emplace_back(report);
  words.push_back(flags.plot);
  std::vector<char*> command;
  for (std::string& word : words) command.push_back(word.data());
  command.push_back(nullptr);
  pid_t pid;
  int status = 0;
  const bool started = posix_spawn(&pid, command[0], nullptr, nullptr, command.data(), environ) == 0;
  if (started && waitpid(pid, &status, 0) == pid && status == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat(flags.plot_script, started ? " has failed" : " cannot be started"));
}

void Declare(Flags* declared, CommandLine* parser) {
  Flags& flags = *declared;
  CommandLine& command_line = *parser;
  command_line.AddFlag("only", "GROUPS",
                       absl::StrCat("groups to measure, from: ", absl::StrJoin(kGroups, ", "),
                                    "; with --peers from: ", absl::StrJoin(kPeerGroups, ", "), "; default: all"),
                       &flags.only);
  command_line.AddFlag("peers", "",
                       "measure training against PyTorch and TensorFlow instead, PyTorch in Lockstep's runs against "
                       "its DDP, Python workers against C++ workers, and models and products on one thread against "
                       "PyTorch and oneDNN",
                       &flags.peers);
  command_line.AddFlag("tls", "", "measure the cost of TLS, as with --only=tls", &flags.tls);
  command_line.AddFlag("json", "FILE", "also write the results as JSON", &flags.json);
  command_line.AddFlag(
      "plot", "FILE",
      "also draw the results (SVG), except frozen, saving, start, memory, recovery and watching; needs "
      "python3-matplotlib",
      &flags.plot);
  command_line.AddFlag("plot_with", "FILE,...", "JSON files of other runs for the same picture", &flags.plot_with);
  command_line.AddFlag("plot_script", "FILE", "tests/benchmark/plot.py", &flags.plot_script);
  command_line.AddFlag("markdown", "", "print a table for a Markdown page", &flags.markdown);
  command_line.AddFlag("seconds", "S", "time for each comparison", &flags.seconds);
  command_line.AddFlag("quick", "", "use small sizes, for a smoke test", &flags.quick);
  command_line.AddFlag("sizes", "BYTES,...", "sizes of the models whose exchange is measured", &flags.sizes);
  command_line.AddFlag("workers", "N,...", "numbers of workers in the measurements of the exchange", &flags.workers);
  command_line.AddFlag("wires", "KINDS",
                       "transports of tensors, from: tcp, unix, shared (memory); without the last, training uses tcp",
                       &flags.wires);
  command_line.AddFlag("naive", "", "also compare with a plain protobuf stub", &flags.naive);
  command_line.AddFlag("alone", "", "exchange with Lockstep only, for a profiler", &flags.alone);
  command_line.AddFlag("step_threads", "N", "the chief's step threads", &flags.step_threads);
  command_line.AddFlag("kernel_parts", "", "also report each matrix product and convolution of the kernels",
                       &flags.kernel_parts);
  command_line.AddFlag("strict", "", "exit with 1 if a bar is missed", &flags.strict);
  command_line.AddFlag("peer_python", "FILE", "an interpreter that has PyTorch and TensorFlow",
                       &flags.peer_paths.python);
  command_line.AddFlag("peer_scripts", "DIR", "tests/benchmark/peers", &flags.peer_paths.scripts);
}

int Main(int argc, char** argv) {
  InitializeProcess(argv[0]);
  FLAGS_minloglevel = google::GLOG_WARNING;
  Flags flags;
  CommandLine command_line(
      "lockstep bench", "Measures Lockstep against other ways of doing the same, in turns, and prints the ratios.",
      "Every number is a minimum, a median and a maximum over many turns; a bar holds for the median of the ratios.");
  Declare(&flags, &command_line);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;
  if (!flags.plot_with.empty() && flags.plot.empty()) {
    std::cerr << "lockstep bench: --plot_with needs --plot\n";
    return kExitBadConfiguration;
  }
  for (const auto& other : absl::StrSplit(flags.plot_with, ',', absl::SkipEmpty())) {
    if (std::filesystem::exists(std::string(other))) continue;
    std::cerr << "lockstep bench: --plot_with: there is no " << other << "\n";
    return kExitBadConfiguration;
  }
  if (!flags.plot.empty() && (flags.json.empty() || flags.plot_script.empty())) {
    std::cerr << "lockstep bench: --plot needs --json and --plot_script\n";
    return kExitBadConfiguration;
  }
  Report report;
  absl::Status status = MeasureInDirectory(flags, &report);
  std::cout << (flags.markdown ? ReportMarkdown(report) : ReportText(report));
  if (!flags.json.empty()) {
    std::ofstream(flags.json) << ReportJson(report) << "\n";
    std::cout << "as JSON: " << flags.json << "\n";
  }
  std::cout.flush();
  if (status.ok() && !flags.plot.empty()) status = DrawPlot(flags);
  if (!status.ok()) {
    std::cerr << "lockstep bench: " << status << "\n";
    return absl::IsInvalidArgument(status) ? kExitBadConfiguration : kExitFailed;
  }
  return flags.strict && !AllBarsMet(report) ? kExitFailed : kExitDone;
}

}  // namespace
}  // namespace benchmark
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::benchmark::Main(argc, argv); }
