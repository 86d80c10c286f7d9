// All benchmarks; `lockstep bench --help` says what they are.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "common/base/process.h"
#include "glog/logging.h"
#include "tests/benchmark/spread.h"
#include "tests/benchmark/step_benchmark.h"

namespace lockstep {
namespace benchmark {
namespace {

struct Flags {
  std::string only;
  std::string json;
  std::string sizes = "4,4096,1048576,2678824,67108864,104857600";
  std::string workers = "1,2";
  std::string sockets = "tcp,unix";
  double seconds = 8;
  bool naive = true;
  int step_threads = 2;
  bool alone = false;
  bool strict = false;
};

std::string MachineText() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(cpuinfo, line);) {
    if (absl::StartsWith(line, "model name")) model = line.substr(line.find(':') + 2);
  }
  return absl::StrCat(std::thread::hardware_concurrency(), " cores, ", model);
}

bool ParseNumbers(const std::string& text, std::vector<int64_t>* out) {
  for (const auto& word : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 1) return false;
    out->push_back(number);
  }
  return true;
}

absl::Status MeasureAll(const Flags& flags, const std::string& directory, Report* report) {
  StepBenchmarkOptions step;
  std::vector<int64_t> workers;
  if (!ParseNumbers(flags.sizes, &step.sizes) || !ParseNumbers(flags.workers, &workers)) {
    return absl::InvalidArgumentError("--sizes and --workers take positive numbers separated by commas");
  }
  step.workers.assign(workers.begin(), workers.end());
  step.unix_socket.clear();
  for (const auto& word : absl::StrSplit(flags.sockets, ',')) step.unix_socket.push_back(word == "unix");
  step.seconds = flags.seconds;
  step.naive = flags.naive;
  step.step_threads = flags.step_threads;
  step.alone = flags.alone;
  step.directory = directory;
  const auto wanted = [&flags](const std::string& group) {
    const std::vector<std::string> words = absl::StrSplit(flags.only, ',');
    return flags.only.empty() || std::find(words.begin(), words.end(), group) != words.end();
  };
  if (wanted("step")) {
    const absl::Status status = MeasureSteps(step, report);
    if (!status.ok()) return status;
  }
  if (wanted("chief_cpu")) {
    StepBenchmarkOptions cpu = step;
    cpu.sizes = {4096, 2678824};
    const absl::Status status = MeasureChiefCpu(cpu, report);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  InitializeProcess(argv[0]);
  FLAGS_minloglevel = google::GLOG_WARNING;
  Flags flags;
  CommandLine command_line(
      "lockstep bench", "Measures Lockstep against other ways of doing the same, in turns, and prints the ratios.",
      "Every number is a minimum, a median and a maximum over many turns; a bar holds for the median of the ratios.");
  command_line.AddFlag("only", "GROUPS", "of: step, chief_cpu; all when empty", &flags.only);
  command_line.AddFlag("json", "FILE", "the same numbers as JSON", &flags.json);
  command_line.AddFlag("sizes", "BYTES,...", "of the models whose exchange is measured", &flags.sizes);
  command_line.AddFlag("workers", "N,...", "in the measurements of the exchange", &flags.workers);
  command_line.AddFlag("sockets", "KINDS", "of: tcp, unix", &flags.sockets);
  command_line.AddFlag("seconds", "S", "for each comparison", &flags.seconds);
  command_line.AddFlag("naive", "", "also compare with a plain protobuf stub", &flags.naive);
  command_line.AddFlag("alone", "", "exchange with Lockstep only, for a profiler", &flags.alone);
  command_line.AddFlag("step_threads", "N", "of the chief", &flags.step_threads);
  command_line.AddFlag("strict", "", "exit with 1 when a bar is missed", &flags.strict);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;

  const char* const working_directory = std::getenv("LOCKSTEP_WORKING_DIRECTORY");
  if (!flags.json.empty() && flags.json[0] != '/' && working_directory != nullptr) {
    flags.json = absl::StrCat(working_directory, "/", flags.json);
  }
  char directory[] = "/tmp/lockstep-bench-XXXXXX";
  if (mkdtemp(directory) == nullptr) {
    std::cerr << "cannot make a directory in /tmp\n";
    return kExitFailed;
  }
  Report report;
  report.set_machine(MachineText());
  double load = 0;
  if (getloadavg(&load, 1) == 1) report.set_load_before(load);
  const absl::Status status = MeasureAll(flags, directory, &report);
  if (std::system(absl::StrCat("rm -rf ", directory).c_str()) != 0) std::cerr << "cannot remove " << directory << "\n";
  std::cout << ReportText(report);
  if (!flags.json.empty()) std::ofstream(flags.json) << ReportJson(report) << "\n";
  if (!status.ok()) {
    std::cerr << "lockstep bench: " << status << "\n";
    return kExitFailed;
  }
  return flags.strict && !AllBarsMet(report) ? kExitFailed : kExitDone;
}

}  // namespace
}  // namespace benchmark
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::benchmark::Main(argc, argv); }
