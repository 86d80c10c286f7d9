#include "lockstep/common/base/process.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep {
namespace {

[[noreturn]] void WaitForSignals() {
  while (true) pause();
}

// Returns when a watch has taken the signals that were sent before.
void AwaitTaken() {
  sigset_t pending;
  do {
    sched_yield();
    sigpending(&pending);
  } while (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT) || sigismember(&pending, SIGHUP));
}

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

// As a full disk does: what a run has saved stays, and it tries again.
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
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    std::atomic<int> calls{0};
    {
      TerminationWatch watch([&] { ++calls; });
      kill(getpid(), signal);
      while (calls == 0) sched_yield();
    }
    EXPECT_EQ(calls, 1);
  }
}

// One stop arrives twice, as under `timeout` or with a closed terminal.
TEST(TerminationWatchTest, RepeatedSignalsAreTheSameStop) {
  SimulatedClock clock;
  for (const int signal : {SIGTERM, SIGHUP}) {
    std::atomic<int> calls{0};
    {
      TerminationWatch watch([&] { ++calls; }, kExitFailed, absl::InfiniteDuration(), &clock);
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

TEST(TerminationWatchDeathTest, EndsAtASecondInterruptEvenIfTheFirstOneHangs) {
  EXPECT_EXIT(
      {
        SimulatedClock clock;
        TerminationWatch watch(
            [&] {
              clock.Advance(absl::Seconds(1));
              kill(getpid(), SIGINT);
              WaitForSignals();
            },
            kExitTerminated, absl::InfiniteDuration(), &clock);
        kill(getpid(), SIGINT);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitTerminated), "");
}

TEST(TerminationWatchDeathTest, EndsAtASecondInterruptEvenIfItIsBeingDestroyed) {
  EXPECT_EXIT(
      {
        SimulatedClock clock;
        std::atomic<bool> called{false};
        TerminationWatch watch(
            [&] {
              called = true;
              while (true) pause();
            },
            kExitFailed, absl::InfiniteDuration(), &clock);
        kill(getpid(), SIGHUP);
        while (!called) sched_yield();
        clock.Advance(absl::Seconds(1));
        kill(getpid(), SIGINT);
        // Leaving the block destroys the watch, which waits for the call.
      },
      ::testing::ExitedWithCode(kExitFailed), "");
}

TEST(TerminationWatchDeathTest, EndsWhenTheLimitHasPassedSinceTheFirst) {
  EXPECT_EXIT(
      {
        TerminationWatch watch([] { WaitForSignals(); }, kExitFailed, absl::Milliseconds(1));
        kill(getpid(), SIGTERM);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitFailed), "");
}

TEST(TerminationWatchDeathTest, AsksForTheLimitAtTheFirstSignalAndForTheExitCodeAtTheEnd) {
  EXPECT_EXIT(
      {
        std::atomic<bool> limited = false;
        std::atomic<bool> over = false;
        TerminationWatch watch(
            [&over] {
              over = true;
              WaitForSignals();
            },
            [&over] {
              while (!over) sched_yield();
              return kExitFailed;
            },
            [&limited] { return limited ? absl::Milliseconds(2) : absl::InfiniteDuration(); });
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
        TerminationWatch watch(
            [&] {
              clock.Advance(absl::Seconds(59));
              kill(getpid(), SIGTERM);
              AwaitTaken();
              clock.Advance(absl::Seconds(1));
              kill(getpid(), SIGTERM);  // so that it looks at the clock
              WaitForSignals();
            },
            kExitFailed, absl::Minutes(1), &clock);
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
        TerminationWatch watch(
            [&] {
              clock.Advance(absl::Seconds(1));
              kill(getpid(), SIGINT);
            },
            [&code] { return code.load(); }, [] { return absl::InfiniteDuration(); }, &clock);
        code = kExitTerminated;
        kill(getpid(), SIGTERM);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitTerminated), "");
}

TEST(TerminationWatchTest, LeavesAHangupIgnoredThatNohupIgnores) {
  signal(SIGHUP, SIG_IGN);
  {
    TerminationWatch watch([] { ADD_FAILURE() << "was told to stop"; });
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGHUP);
  }
  signal(SIGHUP, SIG_DFL);
}

}  // namespace
}  // namespace lockstep
