#include "lockstep/cli/launcher/signal_wait.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(SignalWaitTest, HoldsSignalsBackUntilTheyAreAskedFor) {
  SignalWait signals;
  raise(SIGTERM);
  raise(SIGINT);
  const auto first = signals.Wait(absl::ZeroDuration());
  const auto second = signals.Wait(absl::ZeroDuration());
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_TRUE(IsStop(*first) && IsStop(*second));
  EXPECT_NE(*first, *second);
  EXPECT_EQ(signals.Wait(absl::ZeroDuration()), absl::nullopt);
}

TEST(SignalWaitTest, TerminalCloseStopsUnlessUnderNohup) {
  {
    SignalWait signals;
    raise(SIGHUP);
    const auto signal = signals.Wait(absl::ZeroDuration());
    ASSERT_TRUE(signal.has_value());
    EXPECT_TRUE(IsStop(*signal));
  }
  std::signal(SIGHUP, SIG_IGN);
  SignalWait signals;
  raise(SIGHUP);
  EXPECT_EQ(signals.Wait(absl::ZeroDuration()), absl::nullopt);
  std::signal(SIGHUP, SIG_DFL);
}

TEST(SignalWaitTest, TakesUserSignalsWhichAreNoStops) {
  SignalWait signals;
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    raise(signal);
    EXPECT_EQ(signals.Wait(absl::ZeroDuration()), signal);
    EXPECT_FALSE(IsStop(signal));
  }
}

TEST(SignalWaitTest, WakesWhenAChildEnds) {
  SignalWait signals;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_EQ(signals.Wait(absl::InfiniteDuration()), SIGCHLD);
  EXPECT_FALSE(IsStop(SIGCHLD));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(SignalWaitTest, RepeatedStopsDoNotKillDuringTheEnd) {
  {
    SignalWait signals;
    raise(SIGTERM);
    raise(SIGHUP);
    signals.IgnoreStops();
    raise(SIGINT);
  }
  raise(SIGTERM);
  for (const int stop : {SIGTERM, SIGINT, SIGHUP}) std::signal(stop, SIG_DFL);
}

TEST(SignalWaitTest, LetsSignalsThroughAfterwards) {
  { SignalWait signals; }
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGTERM));
}

}  // namespace
}  // namespace lockstep
