// The simulation program. `./lockstep simulate --help` describes it.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/stubs/logging.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/tests/simulation/life.h"
#include "lockstep/tests/simulation/plan.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {
namespace {

constexpr size_t kTranscriptLines = 20000;
// A chief holds 4096 sessions. Some are for workers that return and for strangers.
constexpr int kMaxWorkers = 2000;

struct Flags {
  int64_t seeds = 1000;
  int64_t seed = 1;
  int workers = 0;
  int jobs = 2;
  bool trace = false;
};

// The counts that the parent shares with a process that runs lives.
struct Share {
  std::atomic<int64_t> lived = 0;  // this process's lives, in order; the next one is in progress
  std::atomic<int64_t> failed = 0;
};

uint64_t current_seed = 0;
int current_workers = 0;
// A file that the processes lock while they print. If the process that holds the lock ends, the kernel releases it.
int printing = -1;

// Locks the output, so that the output of one life stays in one piece.
void BeginPrinting() {
  struct flock all = {};
  all.l_type = F_WRLCK;
  while (fcntl(printing, F_SETLKW, &all) != 0 && errno == EINTR) {
  }
}
void EndPrinting() {
  std::cout << std::flush;
  struct flock all = {};
  all.l_type = F_UNLCK;
  fcntl(printing, F_SETLK, &all);
}

// Reports the seed of the life when a CHECK fails or the process crashes. The report allocates no memory, because
// malloc may have been interrupted. The transcript that follows does allocate, and the process ends if that is
// impossible.
void OnFatal() {
  static volatile sig_atomic_t begun = 0;
  if (begun != 0) std::_Exit(1);
  begun = 1;
  BeginPrinting();
  alarm(10);  // in case a malloc lock is never released
  char line[160];
  const auto seed = static_cast<unsigned long long>(current_seed);
  const int size = std::snprintf(
      line, sizeof(line), "seed %llu ended the process; replay it with --seed=%llu --seeds=1 --workers=%d --trace\n",
      seed, seed, current_workers);
  if (write(STDOUT_FILENO, line, static_cast<size_t>(size)) != size) std::_Exit(1);
  if (CurrentWorld() != nullptr) std::cout << CurrentWorld()->transcript()->Text();
  std::cout << std::flush;
  std::_Exit(1);
}

// Handles crashes on a separate stack, because a fiber's stack may have overflowed.
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

// Runs a life and returns true if it passed. Reruns a failed life to get its transcript.
bool RunSeed(uint64_t seed, const Flags& flags, StackPool* stacks) {
  current_seed = seed;
  current_workers = flags.workers;
  const Plan plan = DrawPlan(seed, /*with_faults=*/true, flags.workers);
  std::string transcript, again;
  const std::string failure = RunLife(plan, flags.trace ? kTranscriptLines : 0, stacks, &transcript);
  if (failure.empty() && !flags.trace) return true;
  if (!flags.trace) again = RunLife(plan, kTranscriptLines, stacks, &transcript);
  BeginPrinting();
  std::cout << plan.Describe() << transcript;
  if (!flags.trace && again != failure) std::cout << "seed " << seed << " does not replay: " << again << "\n";
  if (!failure.empty()) std::cout << "seed " << seed << " failed: " << failure << "\n";
  EndPrinting();
  return failure.empty();
}

// Runs every `jobs`-th seed, beginning with the `job`-th, and skips the seeds that the share has finished.
void RunShare(const Flags& flags, int job, Share* share) {
  StackPool stacks;
  for (int64_t i = job + share->lived * flags.jobs; i < flags.seeds; i += flags.jobs) {
    if (!RunSeed(static_cast<uint64_t>(flags.seed + i), flags, &stacks)) ++share->failed;
    ++share->lived;
  }
}

pid_t StartShare(const Flags& flags, int job, Share* share) {
  const pid_t child = fork();
  PCHECK(child >= 0) << "fork";
  if (child > 0) return child;
  RunShare(flags, job, share);
  std::cout << std::flush;
  _exit(0);
}

// Runs all lives and returns the number of failures.
int64_t RunAll(const Flags& flags) {
  printing = memfd_create("printing", MFD_CLOEXEC);
  PCHECK(printing >= 0) << "memfd_create";
  const size_t bytes = flags.jobs * sizeof(Share);
  void* const shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PCHECK(shared != MAP_FAILED) << "mmap";
  Share* const shares = new (shared) Share[flags.jobs];
  std::map<pid_t, int> jobs;
  for (int job = 0; job < flags.jobs; ++job) jobs[StartShare(flags, job, &shares[job])] = job;
  while (!jobs.empty()) {
    int status = 0;
    const pid_t ended = wait(&status);
    PCHECK(ended > 0) << "wait";
    const int job = jobs.at(ended);
    jobs.erase(ended);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    // A life has ended its process. Another process runs the lives that follow.
    ++shares[job].failed;
    ++shares[job].lived;
    jobs[StartShare(flags, job, &shares[job])] = job;
  }
  int64_t failed = 0;
  for (int job = 0; job < flags.jobs; ++job) failed += shares[job].failed;
  return failed;
}

// Returns the first error in the flags, or an empty string.
std::string CheckFlags(const Flags& flags) {
  if (flags.seeds < 1) return absl::StrCat("--seeds must be at least 1, not ", flags.seeds);
  if (flags.jobs < 1) return absl::StrCat("--jobs must be at least 1, not ", flags.jobs);
  if (flags.seed < 0) return absl::StrCat("--seed must not be negative, and is ", flags.seed);
  if (flags.workers < 0 || flags.workers > kMaxWorkers) {
    return absl::StrCat("--workers must be from 0 to ", kMaxWorkers, ", and is ", flags.workers);
  }
  if (flags.seed > std::numeric_limits<int64_t>::max() - flags.seeds) {
    return absl::StrCat("there are no ", flags.seeds, " seeds from ", flags.seed, " on");
  }
  return "";
}

int Main(int argc, char** argv) {
  Flags flags;
  CommandLine command_line(
      "lockstep simulate",
      "Simulates lives of a run in one thread: chief, workers, disk, network and clock, with all faults "
      "drawn from a seed. A seed that fails prints its transcript, and can be replayed.",
      "Exit codes: 0 no life failed; 1 some lives failed; 2 wrong arguments.");
  command_line.AddFlag("seeds", "N", "number of lives", &flags.seeds);
  command_line.AddFlag("seed", "S", "the first seed; the others are S + 1, S + 2, ...", &flags.seed);
  command_line.AddFlag("workers", "N", "number of workers in each life, up to 2000; if 0, it is drawn, up to 5",
                       &flags.workers);
  command_line.AddFlag("jobs", "N", "number of processes; one with --trace", &flags.jobs);
  command_line.AddFlag("trace", "", "print the transcript of each life, in the order of the seeds", &flags.trace);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;
  if (const std::string wrong = CheckFlags(flags); !wrong.empty()) {
    std::cerr << "lockstep simulate: " << wrong << "\n";
    return kExitBadConfiguration;
  }
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  CaptureLogs();
  google::InstallFailureFunction(&OnFatal);
  WatchForCrashes();
  google::protobuf::SetLogHandler(nullptr);  // ignores the strangers' invalid bytes
  if (flags.trace) flags.jobs = 1;
  if (flags.seeds < flags.jobs) flags.jobs = static_cast<int>(flags.seeds);
  const int64_t failed = RunAll(flags);
  std::cout << flags.seeds << " lives, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace simulation
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::simulation::Main(argc, argv); }
