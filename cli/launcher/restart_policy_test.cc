#include "lockstep/cli/launcher/restart_policy.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

using Decision = RestartPolicy::Decision;

ProcessExit Code(int code) { return {1, code, 0}; }
ProcessExit Killed(int signal) { return {1, 0, signal}; }

TEST(RestartPolicyTest, DistinguishesTheEndsOfAProcess) {
  RestartPolicy policy(10, 0);
  EXPECT_EQ(policy.OnExit(Code(0), absl::Seconds(1)).action, Decision::kFinished);
  EXPECT_EQ(policy.OnExit(Code(143), absl::Seconds(1)).action, Decision::kStopped);
  EXPECT_EQ(policy.OnExit(Killed(SIGTERM), absl::Seconds(1)).action, Decision::kStopped);
  EXPECT_EQ(policy.OnExit(Killed(SIGINT), absl::Seconds(1)).action, Decision::kStopped);
  EXPECT_EQ(policy.OnExit(Code(138), absl::Seconds(1)).action, Decision::kStartAgain);
  EXPECT_EQ(policy.OnExit(Killed(SIGABRT), absl::Seconds(1)).action, Decision::kStartAgain);
  EXPECT_EQ(policy.OnExit(Code(1), absl::Seconds(1)).action, Decision::kFailed);
}

TEST(RestartPolicyTest, KeepsTheExitCodesThatHaveAMeaning) {
  RestartPolicy policy(10, 0);
  EXPECT_EQ(policy.OnExit(Code(1), absl::Seconds(1)).exit_code, 1);
  EXPECT_EQ(policy.OnExit(Code(2), absl::Seconds(1)).exit_code, 2);
  EXPECT_EQ(policy.OnExit(Code(77), absl::Seconds(1)).exit_code, 1);
}

TEST(RestartPolicyTest, WaitsLongerEachTimeUpToTenSeconds) {
  RestartPolicy policy(100, 0);
  absl::Duration delay = policy.OnExit(Code(138), absl::Seconds(1)).delay;
  EXPECT_GT(delay, absl::Milliseconds(50));
  EXPECT_LE(delay, absl::Milliseconds(100));
  for (int i = 0; i < 20; ++i) delay = policy.OnExit(Code(138), absl::Seconds(1)).delay;
  EXPECT_GT(delay, absl::Seconds(5));
  EXPECT_LE(delay, absl::Seconds(10));
  EXPECT_LE(policy.OnExit(Code(138), absl::Minutes(1)).delay, absl::Milliseconds(100));
}

TEST(RestartPolicyTest, GivesUpAfterTheLastRestart) {
  RestartPolicy policy(1, 0);
  EXPECT_EQ(policy.OnExit(Code(138), absl::Seconds(1)).text, "ended with exit code 138; starting it again (1 of 1)");
  const Decision decision = policy.OnExit(Code(138), absl::Seconds(1));
  EXPECT_EQ(decision.action, Decision::kFailed);
  EXPECT_EQ(decision.exit_code, 138);
  EXPECT_EQ(decision.text, "ended with exit code 138 after 1 restarts");
}

TEST(RestartPolicyTest, ForgivesARestartPerTenMinutesRunning) {
  RestartPolicy policy(2, 0);
  // Daily preemption does not use up the restarts.
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(policy.OnExit(Killed(SIGKILL), absl::Hours(24)).text,
              "was killed by SIGKILL; starting it again (1 of 2)");
  }
  // Short running times add up.
  EXPECT_EQ(policy.OnExit(Killed(SIGKILL), absl::Minutes(6)).action, Decision::kStartAgain);
  EXPECT_EQ(policy.OnExit(Killed(SIGKILL), absl::Minutes(6)).text, "was killed by SIGKILL; starting it again (2 of 2)");
  EXPECT_EQ(policy.OnExit(Killed(SIGKILL), absl::Minutes(6)).action, Decision::kFailed);
}

TEST(RestartPolicyTest, FailsImmediatelyWithoutRestarts) {
  RestartPolicy policy(0, 0);
  const Decision decision = policy.OnExit(Killed(SIGKILL), absl::Seconds(1));
  EXPECT_EQ(decision.action, Decision::kFailed);
  EXPECT_EQ(decision.exit_code, 1);
  EXPECT_EQ(decision.text, "was killed by SIGKILL");
}

}  // namespace
}  // namespace lockstep
