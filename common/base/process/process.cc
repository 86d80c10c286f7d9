#include "lockstep/common/base/process/process.h"

#include <malloc.h>
#include <poll.h>
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
#include "lockstep/common/base/process/stop_requests.h"
#include "lockstep/common/base/system_random.h"
#include "lockstep/kernels/vectors/target.h"

namespace lockstep {
namespace {

// The signal that wakes a TerminationWatch that has ended. Other processes may send it too.
constexpr int kWake = SIGUSR1;

// Payloads of a status: its exit code, and a mark that a hanging disk caused the error.
constexpr char kExitCodePayload[] = "lockstep/exit_code";
constexpr char kDiskHangPayload[] = "lockstep/disk_hang";

// Writes `line` to stderr unless that would block. Stderr may be a pipe without a reader, and a thread that holds the
// log's lock may already be blocked on it.
void SayWithoutWaiting(const std::string& line) {
  pollfd output = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&output, 1, 0) != 1 || (output.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

// Returns true if the process's id is the same as on the host, because the process is in the initial PID namespace and
// not in a container's.
bool HasHostsProcessIds() {
  constexpr char kFirst[] = "pid:[4026531836]";  // PROC_PID_INIT_INO of Linux
  char name[sizeof(kFirst)] = "";
  const ssize_t size = readlink("/proc/self/ns/pid", name, sizeof(name));
  return size > 0 && std::string(name, size) == kFirst;
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
  // Debian's build of Abseil runs deadlock detection on every lock that gRPC takes. Lockstep itself does not use
  // Abseil's mutexes.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // gRPC 1.51 reads into the rest of the last buffer, of 8 KiB. A message that does not fit arrives in two parts, and
  // gRPC answers the first with a packet of its own, which takes a fifth of a small step's time. Without this
  // experiment, a connection chooses the size of its buffers (GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE).
  setenv("GRPC_EXPERIMENTS", kGrpcExperiments, /*overwrite=*/0);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
  // Use one heap, so that memory that was allocated for a received message and freed is reused for the next message,
  // whichever thread receives it. With a heap for each thread, a chief's heaps kept twice as much memory as its
  // messages ever needed at the same time.
  mallopt(M_ARENA_MAX, 1);
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGUSR1, SIG_IGN);
  std::signal(SIGUSR2, SIG_IGN);
  // If the parent ignored SIGCHLD, this process has inherited that, and it could not wait for its own children.
  std::signal(SIGCHLD, SIG_DFL);
}

void ReleaseFreedMemory() { malloc_trim(0); }

std::string HostName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return host;
}

std::string ProcessName(const std::string& role) {
  static const auto* const id = new std::string(
      HasHostsProcessIds() ? absl::StrCat(getpid()) : absl::StrCat(absl::Hex(SystemRandom64() >> 40, absl::kZeroPad6)));
  return absl::StrCat(role, "-", *id, "@", HostName());
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGXCPU);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  // SIGHUP is left out if it is ignored, because a blocked signal stays pending even then.
  if (hangup.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
  return signals;
}

sigset_t WatchedSignals() {
  sigset_t signals = StopSignals();
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  return signals;
}

TerminationWatch::TerminationWatch(Options options) : options_(std::move(options)), signals_(WatchedSignals()) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  actor_ = options_.executor->Start("terminate", [this] { Act(); });
  watcher_ = options_.executor->Start("signals", [this] { Watch(); });
}

TerminationWatch::~TerminationWatch() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.SignalAll();
  }
  // Meanwhile, a second Ctrl-C still ends the process.
  actor_->Join();
  pthread_t watcher;
  {
    MutexLock lock(&mutex_);
    while (!watcher_id_) changed_.Wait(&mutex_);
    watcher = *watcher_id_;
    over_ = true;
  }
  pthread_kill(watcher, kWake);
  watcher_->Join();
}

void TerminationWatch::Watch() {
  {
    MutexLock lock(&mutex_);
    watcher_id_ = pthread_self();
    changed_.SignalAll();
  }
  StopRequests requests;
  absl::Duration limit;
  absl::Time deadline = absl::InfiniteFuture();
  for (;;) {
    const int signal = Next(deadline);
    if (over()) return;
    if (signal < 0) {
      SayWithoutWaiting(absl::StrCat("not ended ", absl::FormatDuration(limit), " after it was told to: ends now\n"));
      std::_Exit(options_.second_exit_code());
    }
    const absl::Time now = options_.clock->Now();
    switch (requests.On(signal, now)) {
      case StopRequests::Meaning::kSame:
        break;
      case StopRequests::Meaning::kSave:
        RequestAct(/*stop_signal=*/0);
        break;
      case StopRequests::Meaning::kAtOnce:
        std::_Exit(options_.second_exit_code());
      case StopRequests::Meaning::kStop:
        limit = options_.limit();
        deadline = now + limit;
        RequestAct(signal);
    }
  }
}

void TerminationWatch::Act() {
  for (;;) {
    bool stops = false;
    {
      MutexLock lock(&mutex_);
      while (stop_signal_ == 0 && !save_due_ && !ending_) changed_.Wait(&mutex_);
      stops = stop_signal_ != 0;
      if (ending_ && !stops) return;
      save_due_ = false;
    }
    if (stops) return options_.on_stop();
    if (options_.on_save) options_.on_save();
  }
}

int TerminationWatch::Next(absl::Time deadline) {
  for (;;) {
    // Limits the wait to what a timespec can hold.
    const absl::Duration left =
        std::clamp(deadline - options_.clock->Now(), absl::ZeroDuration(), absl::Hours(1000000));
    const timespec timeout = absl::ToTimespec(left);
    const int signal = sigtimedwait(&signals_, nullptr, &timeout);
    if (signal > 0) return signal;
    if (options_.clock->Now() >= deadline) return -1;
  }
}

int TerminationWatch::stop_signal() const {
  MutexLock lock(&mutex_);
  return stop_signal_;
}

void TerminationWatch::RequestAct(int stop_signal) {
  MutexLock lock(&mutex_);
  if (ending_) return;
  // StopRequests reports only one stop signal.
  if (stop_signal != 0) stop_signal_ = stop_signal;
  save_due_ = true;
  changed_.SignalAll();
}

bool TerminationWatch::over() const {
  MutexLock lock(&mutex_);
  return over_;
}

}  // namespace lockstep
