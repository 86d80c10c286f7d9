#include "lockstep/train/session/recovery_policy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

TEST(RecoveryPolicyTest, WaitsLongerEachTimeAndGivesUp) {
  RecoveryOptions options;
  options.max_attempts = 3;
  RecoveryPolicy policy(options);
  absl::Duration previous;
  for (int i = 0; i < 3; ++i) {
    const auto wait = policy.OnFailure(absl::UnavailableError("gone"));
    ASSERT_TRUE(wait.ok());
    EXPECT_GT(*wait, previous);
    previous = *wait;
  }
  const absl::Status given_up = policy.OnFailure(absl::AbortedError("gone")).status();
  EXPECT_TRUE(absl::IsAborted(given_up));
  EXPECT_THAT(given_up.message(), HasSubstr("given up after 3 further sessions without a step: gone"));
}

TEST(RecoveryPolicyTest, RestartsItsCountAfterAStep) {
  RecoveryOptions options;
  options.max_attempts = 1;
  RecoveryPolicy policy(options);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(policy.OnFailure(absl::AbortedError("gone")).ok());
    policy.OnProgress();
  }
}

TEST(RecoveryPolicyTest, PassesOnWhatAnotherSessionDoesNotSurvive) {
  RecoveryPolicy policy({});
  for (const absl::Status& status : {absl::CancelledError("stop"), absl::InternalError("bug"),
                                     absl::OutOfRangeError("over"), absl::DeadlineExceededError("late")}) {
    EXPECT_EQ(policy.OnFailure(status).status(), status);
  }
}

}  // namespace
}  // namespace lockstep::train
