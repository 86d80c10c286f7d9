#include "lockstep/common/base/process.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "glog/logging.h"
#include "lockstep/common/base/stop_requests.h"
#include "lockstep/common/kernels/target.h"

namespace lockstep {
namespace {

// Ends a TerminationWatch; not otherwise used by the process.
constexpr int kEndWatch = SIGUSR2;

// Of a status: its exit code.
constexpr char kExitCodePayload[] = "lockstep/exit_code";
constexpr char kDiskHangPayload[] = "lockstep/disk_hang";

sigset_t WatchedSignals() {
  sigset_t signals = StopSignals();
  sigaddset(&signals, kEndWatch);
  return signals;
}

}  // namespace

absl::Status WithExitCode(absl::Status status, int exit_code) {
  if (!status.ok()) status.SetPayload(kExitCodePayload, absl::Cord(absl::StrCat(exit_code)));
  return status;
}

absl::Status AsDiskHang(absl::Status status) {
  if (!status.ok()) status.SetPayload(kDiskHangPayload, absl::Cord("1"));
  return WithExitCode(std::move(status), kExitFailed);
}

bool IsDiskHang(const absl::Status& status) { return status.GetPayload(kDiskHangPayload).has_value(); }

int ExitCodeOf(const absl::Status& status) {
  int exit_code = 0;
  const auto payload = status.GetPayload(kExitCodePayload);
  if (payload && absl::SimpleAtoi(std::string(*payload), &exit_code)) return exit_code;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kCancelled:
      return kExitTerminated;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitRetryable;
    default:
      return kExitFailed;
  }
}

void InitializeProcess(const char* program) {
  const std::string target_error = TargetError();
  if (!target_error.empty()) {
    std::fprintf(stderr, "%s: %s\n", program, target_error.c_str());
    std::_Exit(kExitBadConfiguration);
  }
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(program);
  // Debian's Abseil looks for deadlocks at every lock of gRPC's; ours are other mutexes.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
  // One heap: memory that a received message took and freed serves the next one, whichever thread receives it. With a
  // heap for each thread, a chief's heaps kept twice what its messages ever took at once.
  mallopt(M_ARENA_MAX, 1);
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void ReleaseFreedMemory() { malloc_trim(0); }

std::string HostName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return host;
}

std::string ProcessName(const std::string& role) { return absl::StrCat(role, "-", getpid(), "@", HostName()); }

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  // A blocked signal waits to be taken even if it is ignored.
  if (hangup.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
  return signals;
}

TerminationWatch::TerminationWatch(std::function<void()> on_first, int second_exit_code, absl::Duration limit,
                                   Clock* clock, Executor* executor)
    : TerminationWatch(
          std::move(on_first), [second_exit_code] { return second_exit_code; }, [limit] { return limit; }, clock,
          executor) {}

TerminationWatch::TerminationWatch(std::function<void()> on_first, std::function<int()> second_exit_code,
                                   std::function<absl::Duration()> limit, Clock* clock, Executor* executor)
    : on_first_(std::move(on_first)),
      second_exit_code_(std::move(second_exit_code)),
      signals_(WatchedSignals()),
      limit_(std::move(limit)),
      clock_(clock),
      executor_(executor) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = executor_->Start("signals", [this] { Watch(); });
}

TerminationWatch::~TerminationWatch() {
  std::unique_ptr<Thread> first;
  pthread_t watcher;
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    while (!watcher_) watching_.Wait(&mutex_);
    watcher = *watcher_;
    first = std::move(first_);
  }
  // A second Ctrl-C still ends the process meanwhile.
  first.reset();
  pthread_kill(watcher, kEndWatch);
  thread_->Join();
}

void TerminationWatch::Watch() {
  {
    MutexLock lock(&mutex_);
    watcher_ = pthread_self();
    watching_.SignalAll();
  }
  StopRequests requests;
  absl::Duration limit;
  absl::Time deadline = absl::InfiniteFuture();
  for (;;) {
    const int signal = Next(deadline);
    if (signal == kEndWatch) return;
    if (signal < 0) {
      LOG(ERROR) << "not ended " << absl::FormatDuration(limit) << " after it was told to: ends now";
      std::_Exit(second_exit_code_());
    }
    const absl::Time now = clock_->Now();
    const StopRequests::Meaning meaning = requests.On(signal, now);
    if (meaning == StopRequests::Meaning::kAtOnce) std::_Exit(second_exit_code_());
    if (meaning != StopRequests::Meaning::kStop) continue;
    limit = limit_();
    deadline = now + limit;
    OnFirst();
  }
}

int TerminationWatch::Next(absl::Time deadline) {
  for (;;) {
    // More than a timespec holds is no limit.
    const absl::Duration left = std::clamp(deadline - clock_->Now(), absl::ZeroDuration(), absl::Hours(1000000));
    const timespec timeout = absl::ToTimespec(left);
    const int signal = sigtimedwait(&signals_, nullptr, &timeout);
    if (signal > 0) return signal;
    if (clock_->Now() >= deadline) return -1;
  }
}

void TerminationWatch::OnFirst() {
  MutexLock lock(&mutex_);
  if (!ending_) first_ = executor_->Start("terminate", on_first_);
}

}  // namespace lockstep
