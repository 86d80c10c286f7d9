// The simulation; `./lockstep simulate --help` says what it does.
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "google/protobuf/stubs/logging.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/tests/simulation/life.h"
#include "lockstep/tests/simulation/plan.h"
#include "lockstep/tests/simulation/world.h"

namespace lockstep {
namespace simulation {
namespace {

constexpr size_t kTranscriptLines = 20000;

struct Flags {
  int64_t seeds = 1000;
  int64_t seed = 1;
  int jobs = 2;
  bool trace = false;
};

uint64_t current_seed = 0;

// A CHECK of the product failed, or worse: whose life it was.
void OnFatal() {
  std::cout << "seed " << current_seed << " ended the process; replay it with --seed=" << current_seed
            << " --seeds=1 --trace\n";
  if (CurrentWorld() != nullptr) std::cout << CurrentWorld()->transcript()->Text();
  std::cout << std::flush;
  std::_Exit(1);
}

// On a stack of its own: that of a fiber may be what is full.
void WatchForCrashes() {
  static char stack[256 << 10];
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  PCHECK(sigaltstack(&alternative, nullptr) == 0);
  struct sigaction action = {};
  action.sa_handler = [](int) { OnFatal(); };
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE}) PCHECK(sigaction(signal, &action, nullptr) == 0);
}

std::string Live(uint64_t seed, size_t lines, StackPool* stacks, std::string* transcript) {
  Life life(DrawPlan(seed, /*with_faults=*/true), lines, stacks);
  const std::string failure = life.Run();
  *transcript = life.TranscriptText();
  return failure;
}

// Whether the life went as it must. One that did not is lived again, for its transcript.
bool RunSeed(uint64_t seed, bool trace, StackPool* stacks) {
  current_seed = seed;
  std::string transcript;
  const std::string failure = Live(seed, trace ? kTranscriptLines : 0, stacks, &transcript);
  if (trace) std::cout << DrawPlan(seed, /*with_faults=*/true).Describe() << transcript;
  if (failure.empty()) return true;
  if (!trace) {
    const std::string again = Live(seed, kTranscriptLines, stacks, &transcript);
    std::cout << DrawPlan(seed, /*with_faults=*/true).Describe() << transcript;
    if (again != failure) std::cout << "seed " << seed << " does not replay: " << again << "\n";
  }
  std::cout << "seed " << seed << " failed: " << failure << "\n" << std::flush;
  return false;
}

// Every `jobs`-th seed, from the `first`; returns how many failed.
int RunShare(const Flags& flags, int first) {
  StackPool stacks;
  int failed = 0;
  for (int64_t i = first; i < flags.seeds; i += flags.jobs) {
    if (!RunSeed(static_cast<uint64_t>(flags.seed + i), flags.trace, &stacks)) ++failed;
  }
  return failed;
}

int Main(int argc, char** argv) {
  Flags flags;
  CommandLine command_line("lockstep simulate",
                           "Lives of a run in one thread: chief, workers, disk, network and clock, with every fault, "
                           "all drawn from a seed. A "
                           "seed that fails prints what happened, and does so again.",
                           "Exit codes: 0 no life failed; 1 some did.");
  command_line.AddFlag("seeds", "N", "how many lives", &flags.seeds);
  command_line.AddFlag("seed", "S", "the first; the others are S + 1, S + 2, ...", &flags.seed);
  command_line.AddFlag("jobs", "N", "processes that share them", &flags.jobs);
  command_line.AddFlag("trace", "", "prints what happens in each life", &flags.trace);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  CaptureLogs();
  google::InstallFailureFunction(&OnFatal);
  WatchForCrashes();
  google::protobuf::SetLogHandler(nullptr);  // what a stranger's bytes are is no news
  if (flags.seeds < flags.jobs) flags.jobs = static_cast<int>(flags.seeds);
  int64_t failed = 0;
  std::vector<std::pair<pid_t, int>> children;
  for (int job = 0; job < flags.jobs; ++job) {
    int ends[2];
    PCHECK(pipe(ends) == 0);
    const pid_t child = fork();
    PCHECK(child >= 0) << "fork";
    if (child == 0) {
      const int64_t count = RunShare(flags, job);
      PCHECK(write(ends[1], &count, sizeof(count)) == sizeof(count));
      std::cout << std::flush;
      _exit(0);
    }
    close(ends[1]);
    children.emplace_back(child, ends[0]);
  }
  for (const auto& [child, result] : children) {
    int64_t count = 0;
    // One that has died has told nothing, and its other lives were not lived.
    if (read(result, &count, sizeof(count)) != sizeof(count)) count = 1;
    failed += count;
    waitpid(child, nullptr, 0);
  }
  std::cout << flags.seeds << " lives, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace simulation
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::simulation::Main(argc, argv); }
