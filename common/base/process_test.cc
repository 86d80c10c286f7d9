#include "common/base/process.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

[[noreturn]] void WaitForSignals() {
  while (true) pause();
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

TEST(TerminationWatchDeathTest, EndsAtTheSecondSignalEvenIfTheFirstOneHangs) {
  EXPECT_EXIT(
      {
        TerminationWatch watch([] {
          kill(getpid(), SIGTERM);
          WaitForSignals();
        });
        kill(getpid(), SIGINT);
        WaitForSignals();
      },
      ::testing::ExitedWithCode(kExitTerminated), "");
}

TEST(TerminationWatchDeathTest, EndsAtTheSecondSignalEvenIfItIsBeingDestroyed) {
  EXPECT_EXIT(
      {
        std::atomic<bool> called{false};
        TerminationWatch watch(
            [&] {
              called = true;
              while (true) pause();
            },
            kExitFailed);
        kill(getpid(), SIGHUP);
        while (!called) sched_yield();
        kill(getpid(), SIGHUP);
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

TEST(TerminationWatchDeathTest, EndsWithTheExitCodeThatWasSetLast) {
  EXPECT_EXIT(
      {
        TerminationWatch watch([] { kill(getpid(), SIGTERM); }, kExitFailed);
        watch.set_second_exit_code(kExitTerminated);
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
