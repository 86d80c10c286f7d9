#include "common/base/process.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace lockstep {
namespace {

// Ends a TerminationWatch; not otherwise used by the process.
constexpr int kEndWatch = SIGUSR2;

sigset_t WatchedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, kEndWatch}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

int ExitCodeOf(const absl::Status& status) {
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
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    std::fprintf(stderr, "%s: this processor has no AVX2 and FMA, which Lockstep is compiled for\n", program);
    std::_Exit(kExitBadConfiguration);
  }
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(program);
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
}

std::string ProcessName(const std::string& role) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat(role, "-", getpid(), "@", host);
}

TerminationWatch::TerminationWatch(std::function<void()> on_first) : on_first_(std::move(on_first)) {
  const sigset_t signals = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] {
    const sigset_t watched = WatchedSignals();
    for (int seen = 0, signal = 0;;) {
      if (sigwait(&watched, &signal) != 0) continue;
      if (signal == kEndWatch) return;
      if (++seen > 1) std::_Exit(kExitTerminated);
      on_first_();
    }
  });
}

TerminationWatch::~TerminationWatch() {
  pthread_kill(thread_.native_handle(), kEndWatch);
  thread_.join();
}

}  // namespace lockstep
