#include "lockstep/server/chief/run/run_identity.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/process.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Time kNow = absl::UnixEpoch();

TEST(RunIdentityTest, AnIdHasSixteenDigits) {
  EXPECT_EQ(RunIdText(0), "0000000000000000");
  EXPECT_EQ(RunIdText(0xabc), "0000000000000abc");
  EXPECT_EQ(RunIdText(~uint64_t{0}), "ffffffffffffffff");
}

TEST(RunIdentityTest, ALaterStepShowsAWrongLogdir) {
  RunOrigin origin;
  origin.unexpected = true;
  EXPECT_TRUE(ShowsWrongLogdir(origin, 1, kNow));
  EXPECT_FALSE(ShowsWrongLogdir(origin, 0, kNow)) << "nothing is lost";
  origin.begun = kNow;
  origin.step = 5;
  EXPECT_TRUE(ShowsWrongLogdir(origin, 6, kNow + kOtherRunLimit));
  EXPECT_FALSE(ShowsWrongLogdir(origin, 5, kNow));
  EXPECT_FALSE(ShowsWrongLogdir(origin, 6, kNow + kOtherRunLimit + absl::Nanoseconds(1))) << "a stray worker";
  origin.unexpected = false;
  EXPECT_FALSE(ShowsWrongLogdir(origin, 6, kNow));
}

TEST(RunIdentityTest, MessagesNameBothRuns) {
  v1::OpenSessionRequest request;
  request.set_worker("w");
  request.set_host("h");
  request.set_run_id("a\n");
  request.set_last_step(7);
  EXPECT_EQ(RefusedForItsRun(request, "b").message(),
            "w on h has served run a\\n up to step 7, and this is run b: start the worker again to have it join this "
            "run");
  v1::RunRecord::OtherRun other;
  other.set_run_id("a");
  other.set_step(7);
  other.set_worker("w on h");
  const absl::Status status = WrongLogdir(other, "/logs", "b");
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("w on h has served run a up to step 7, but the logdir /logs was empty, so run b began at "
                              "step 0"),
                    HasSubstr("whose lockstep.textproto names run a, or with --new_run")));
  EXPECT_EQ(ExitCodeOf(status), kExitBadConfiguration);
  EXPECT_THAT(std::string(WrongLogdir(other, "", "b").message()), HasSubstr("this chief has no logdir, so run b"));
}

}  // namespace
}  // namespace lockstep
