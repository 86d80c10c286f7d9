#include "lockstep/common/base/process/process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep {
namespace {

[[noreturn]] void WaitForSignals() {
  while (true) pause();
}

// Waits until a watch has taken all signals that were sent before.
void AwaitTaken() {
  sigset_t pending;
  const auto any = [&pending] {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGXCPU, SIGUSR1, SIGUSR2}) {
      if (sigismember(&pending, signal)) return true;
    }
    return false;
  };
  do {
    sched_yield();
    sigpending(&pending);
  } while (any());
}

TerminationWatch::Options Watching(std::function<void()> on_stop, Clock* clock = Clock::Real(),
                                   int second_exit_code = kExitTerminated,
                                   absl::Duration limit = absl::InfiniteDuration()) {
  TerminationWatch::Options options;
  options.on_stop = std::move(on_stop);
  options.clock = clock;
  options.second_exit_code = [second_exit_code] { return second_exit_code; };
  options.limit = [limit] { return limit; };
  return options;
}

// An executor that can start only two threads.
class TwoThreads : public Executor {
 private:
  std::unique_ptr<Thread> StartThread(std::string name, Priority priority, absl::AnyInvocable<void()> body) override {
    if (started_++ >= 2) return nullptr;
    return Threads()->TryStart(std::move(name), std::move(body), priority);
  }
  std::atomic<int> started_{0};
};

TEST(ExitCodeTest, AnErrorMayBringItsOwn) {
  const absl::Status error = absl::FailedPreconditionError("another seed");
  EXPECT_EQ(ExitCodeOf(error), kExitFailed);
  EXPECT_EQ(ExitCodeOf(WithExitCode(error, kExitBadConfiguration)), kExitBadConfiguration);
  EXPECT_EQ(WithExitCode(error, kExitBadConfiguration).message(), error.message());
  EXPECT_EQ(ExitCodeOf(WithExitCode(absl::OkStatus(), kExitFailed)), kExitDone);
}

TEST(ExitCodeTest, ADiskThatHangsIsNoAbsence) {
  const absl::Status absent = absl::DeadlineExceededError("no chief came"), hang = AsDiskHang(absent);
  EXPECT_FALSE(IsDiskHang(absent));
  EXPECT_EQ(ExitCodeOf(absent), kExitRetryable);
  EXPECT_TRUE(IsDiskHang(hang));
  EXPECT_EQ(ExitCodeOf(hang), kExitFailed);
  EXPECT_TRUE(absl::IsDeadlineExceeded(hang));
  EXPECT_TRUE(AsDiskHang(absl::OkStatus()).ok());
}

// A write beyond the limit fails like a write to a full disk. Data that was saved is kept, and the run tries again.
TEST(InitializeProcessTest, AFileBeyondTheLimitIsAnErrorAndNoEnd) {
  const auto write_beyond_the_limit = [] {
    InitializeProcess("test");
    rlimit limit = {0, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::FILE* const file = std::tmpfile();
    std::_Exit(ftruncate(fileno(file), 1) != 0 && errno == EFBIG ? 0 : 1);
  };
  EXPECT_EXIT(write_beyond_the_limit(), testing::ExitedWithCode(0), "");
}

TEST(TerminationWatchTest, CallsAtTheFirstSignalOfEachKind) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGXCPU}) {
    std::atomic<int> calls{0};
    {
      TerminationWatch watch(Watching([&] { ++calls; }));
      kill(getpid(), signal);
      while (calls == 0) sched_yield();
    }
    EXPECT_EQ(calls, 1);
  }
}

// A stop signal arrives twice, as under `timeout` or when a terminal closes.
TEST(TerminationWatchTest, RepeatedSignalsAreTheSameStop) {
  SimulatedClock clock;
  for (const int signal : {SIGTERM, SIGHUP}) {
    std::atomic<int> calls{0};
    {
      TerminationWatch watch(Watching([&] { ++calls; }, &clock, kExitFailed));
      kill(getpid(), SIGINT);
      while (calls == 0) sched_yield();
      kill(getpid(), SIGINT);  // within a second
      AwaitTaken();
      kill(getpid(), signal);
      AwaitTaken();
      clock.Advance(absl::Hours(1));
      kill(getpid(), signal);
      AwaitTaken();
    }
    EXPECT_EQ(calls, 1);
  }
}

TEST(TerminationWatchDeathTest, EndsAtSecondInterruptIfFirstHangs) {
  EXPECT_EXIT(
      {
        SimulatedClock clock;
        TerminationWatch watch(Watching(
            [&] {
              clock.Advance(absl::Seconds(1));
              kill(getpid(), SIGINT);
              WaitForSignals();
            },
            &clock));
        kill(getpid(), SIGINT);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitTerminated), "");
}

TEST(TerminationWatchDeathTest, EndsAtSecondInterruptWhileDestroyed) {
  EXPECT_EXIT(
      {
        SimulatedClock clock;
        std::atomic<bool> called{false};
        TerminationWatch watch(Watching(
            [&] {
              called = true;
              WaitForSignals();
            },
            &clock, kExitFailed));
        kill(getpid(), SIGHUP);
        while (!called) sched_yield();
        clock.Advance(absl::Seconds(1));
        kill(getpid(), SIGINT);
        // Leaving the block destroys the watch, which waits for the call.
      },
      ::testing::ExitedWithCode(kExitFailed), "");
}

TEST(TerminationWatchDeathTest, EndsWhenTheLimitHasPassed) {
  EXPECT_EXIT(
      {
        TerminationWatch watch(Watching([] { WaitForSignals(); }, Clock::Real(), kExitFailed, absl::Milliseconds(1)));
        kill(getpid(), SIGTERM);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitFailed), "");
}

// Stderr is a full pipe, as in `lockstep chief ... 2>&1 | less` when the user does not scroll.
TEST(TerminationWatchDeathTest, EndsAtTheLimitEvenIfStderrBlocks) {
  EXPECT_EXIT(
      {
        alarm(30);
        int full[2];
        if (pipe2(full, O_NONBLOCK) != 0) std::_Exit(0);
        while (write(full[1], "", 1) == 1) {
        }
        fcntl(full[1], F_SETFL, 0);
        dup2(full[1], STDERR_FILENO);
        TerminationWatch watch(
            Watching([] { LOG(ERROR) << "stops"; }, Clock::Real(), kExitFailed, absl::Milliseconds(1)));
        kill(getpid(), SIGTERM);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitFailed), "");
}

TEST(TerminationWatchDeathTest, ReadsLimitFirstAndExitCodeAtTheEnd) {
  EXPECT_EXIT(
      {
        std::atomic<bool> limited = false;
        std::atomic<bool> over = false;
        TerminationWatch::Options options;
        options.on_stop = [&over] {
          over = true;
          WaitForSignals();
        };
        options.second_exit_code = [&over] {
          while (!over) sched_yield();
          return kExitFailed;
        };
        options.limit = [&limited] { return limited ? absl::Milliseconds(2) : absl::InfiniteDuration(); };
        TerminationWatch watch(options);
        limited = true;
        kill(getpid(), SIGTERM);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitFailed), "not ended 2ms after it was told to");
}

TEST(TerminationWatchDeathTest, CountsTheLimitFromTheFirstSignal) {
  EXPECT_EXIT(
      {
        SimulatedClock clock;
        TerminationWatch watch(Watching(
            [&] {
              clock.Advance(absl::Seconds(59));
              kill(getpid(), SIGTERM);
              AwaitTaken();
              clock.Advance(absl::Seconds(1));
              kill(getpid(), SIGTERM);  // so that it looks at the clock
              WaitForSignals();
            },
            &clock, kExitFailed, absl::Minutes(1)));
        kill(getpid(), SIGTERM);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitFailed), "not ended 1m after it was told to");
}

TEST(TerminationWatchDeathTest, EndsWithTheExitCodeThatWasSetLast) {
  EXPECT_EXIT(
      {
        SimulatedClock clock;
        std::atomic<int> code{kExitFailed};
        TerminationWatch::Options options = Watching(
            [&] {
              clock.Advance(absl::Seconds(1));
              kill(getpid(), SIGINT);
            },
            &clock);
        options.second_exit_code = [&code] { return code.load(); };
        TerminationWatch watch(options);
        code = kExitTerminated;
        kill(getpid(), SIGTERM);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitTerminated), "");
}

TEST(TerminationWatchTest, LeavesAHangupIgnoredThatNohupIgnores) {
  signal(SIGHUP, SIG_IGN);
  {
    TerminationWatch watch(Watching([] { ADD_FAILURE() << "was told to stop"; }));
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGHUP);
  }
  // Drops pending signals that an earlier watch has blocked.
  signal(SIGHUP, SIG_IGN);
  signal(SIGHUP, SIG_DFL);
}

// Cluster schedulers send both signals before they take a machine away.
TEST(TerminationWatchTest, UserSignalsSaveAndAStopStillWorks) {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    std::atomic<int> saves{0}, stops{0};
    {
      TerminationWatch::Options options = Watching([&] { ++stops; });
      options.on_save = [&] { ++saves; };
      TerminationWatch watch(options);
      for (int i = 1; i <= 3; ++i) {
        kill(getpid(), signal);
        while (saves < i) sched_yield();
      }
      EXPECT_EQ(stops, 0);
      kill(getpid(), SIGTERM);
      while (stops == 0) sched_yield();
      kill(getpid(), signal);
      AwaitTaken();
    }
    EXPECT_EQ(stops, 1);
    EXPECT_EQ(saves, 3) << "a stop saves anyway";
  }
}

TEST(TerminationWatchTest, UserSignalsChangeNothingWithoutASave) {
  std::atomic<int> stops{0};
  TerminationWatch watch(Watching([&] { ++stops; }));
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    kill(getpid(), signal);
    AwaitTaken();
  }
  kill(getpid(), SIGTERM);
  while (stops == 0) sched_yield();
}

TEST(TerminationWatchTest, ABurstOfRequestsIsOneSave) {
  std::atomic<bool> goes_on{false};
  std::atomic<int> saves{0};
  TerminationWatch::Options options = Watching([] {});
  options.on_save = [&] {
    ++saves;
    while (!goes_on) sched_yield();
  };
  TerminationWatch watch(options);
  kill(getpid(), SIGUSR1);
  while (saves == 0) sched_yield();
  for (int i = 0; i < 1000; ++i) {
    kill(getpid(), i % 2 == 0 ? SIGUSR1 : SIGUSR2);
    AwaitTaken();
  }
  goes_on = true;
  while (saves < 2) sched_yield();
  kill(getpid(), SIGUSR1);
  while (saves < 3) sched_yield();
  EXPECT_EQ(saves, 3);
}

TEST(TerminationWatchTest, StopsWhereNoThreadIsLeft) {
  TwoThreads executor;
  std::atomic<int> saves{0}, stops{0};
  TerminationWatch::Options options = Watching([&] { ++stops; });
  options.on_save = [&] { ++saves; };
  options.executor = &executor;
  TerminationWatch watch(options);
  ASSERT_EQ(executor.TryStart("another", [] {}), nullptr);
  kill(getpid(), SIGUSR1);
  while (saves == 0) sched_yield();
  kill(getpid(), SIGTERM);
  while (stops == 0) sched_yield();
}

TEST(InitializeProcessTest, AwaitsChildrenDespiteIgnoredSigchld) {
  const auto await_child = [] {
    signal(SIGCHLD, SIG_IGN);
    InitializeProcess("test");
    const pid_t child = fork();
    if (child == 0) std::_Exit(7);
    int status = 0;
    std::_Exit(waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  };
  EXPECT_EXIT(await_child(), testing::ExitedWithCode(7), "");
}

// gRPC reads small messages in one part only with buffers of the size that a connection asks for.
TEST(InitializeProcessTest, LetsConnectionsChooseTheirReadBuffers) {
  const auto initialize = [](const char* before) {
    unsetenv("GRPC_EXPERIMENTS");
    if (before != nullptr) setenv("GRPC_EXPERIMENTS", before, 1);
    InitializeProcess("test");
    std::fprintf(stderr, "experiments: %s\n", getenv("GRPC_EXPERIMENTS"));
    std::_Exit(0);
  };
  EXPECT_EXIT(initialize(nullptr), testing::ExitedWithCode(0), "experiments: -tcp_read_chunks");
  EXPECT_EXIT(initialize("users"), testing::ExitedWithCode(0), "experiments: users");
}

// A program that never runs long enough to need a watch has none.
TEST(InitializeProcessTest, UserSignalsWithoutAWatchAreHarmless) {
  const auto take_both = [] {
    InitializeProcess("test");
    raise(SIGUSR1);
    raise(SIGUSR2);
    std::_Exit(0);
  };
  EXPECT_EXIT(take_both(), testing::ExitedWithCode(0), "");
}

// Returns the name that the first process of a container gives itself, or an empty string where containers are not
// allowed.
std::string NameInAContainer() {
  int pipes[2];
  if (pipe(pipes) != 0) return "";
  if (fork() == 0) {
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(1);
    if (fork() != 0) {
      wait(nullptr);
      _exit(0);
    }
    const std::string name = getpid() == 1 ? ProcessName("worker") : "";
    _exit(write(pipes[1], name.data(), name.size()) == static_cast<ssize_t>(name.size()) ? 0 : 1);
  }
  close(pipes[1]);
  char name[256];
  const ssize_t size = read(pipes[0], name, sizeof(name));
  close(pipes[0]);
  wait(nullptr);
  return std::string(name, std::max<ssize_t>(0, size));
}

TEST(ProcessNameTest, ContainersOfOneHostNameDiffer) {
  const std::string first = NameInAContainer(), second = NameInAContainer();
  if (first.empty()) GTEST_SKIP() << "no process may have a namespace of its own here";
  EXPECT_NE(first, second);
  for (const std::string& name : {first, second}) {
    EXPECT_EQ(name.find_first_not_of("0123456789abcdef", 7), 13) << name;
    EXPECT_EQ(name.substr(0, 7), "worker-");
    EXPECT_EQ(name.substr(13), "@" + HostName());
  }
}

TEST(ProcessNameTest, StaysTheSame) { EXPECT_EQ(ProcessName("worker"), ProcessName("worker")); }

}  // namespace
}  // namespace lockstep
