#include "lockstep/cli/replay/program_replay.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class ProgramReplayTest : public ::testing::Test {
 protected:
  ~ProgramReplayTest() override { unsetenv("LOCKSTEP_REPLAY"); }
};

TEST_F(ProgramReplayTest, NoRequest) {
  unsetenv("LOCKSTEP_REPLAY");
  const auto none = ProgramReplay::FromEnvironment();
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value());
}

TEST_F(ProgramReplayTest, RequestOfTheCommand) {
  ReplayRequest request;
  request.logdir = "/runs/a net";
  request.step = 3;
  request.slot = 1;
  const std::string definition = ProgramReplay::Definition(request, "/result");
  setenv("LOCKSTEP_REPLAY", definition.c_str() + definition.find('=') + 1, 1);
  const auto replay = ProgramReplay::FromEnvironment();
  ASSERT_TRUE(replay.ok()) << replay.status();
  ASSERT_TRUE(replay->has_value());
  EXPECT_EQ((*replay)->logdir(), "/runs/a net");
}

TEST_F(ProgramReplayTest, WrongRequest) {
  setenv("LOCKSTEP_REPLAY", "yes", 1);
  const absl::Status status = ProgramReplay::FromEnvironment().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("LOCKSTEP_REPLAY is wrong: lockstep replay: takes --logdir"));
}

}  // namespace
}  // namespace lockstep
