#include "lockstep/cli/replay/program_replay.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/file_system.h"

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
  request.logdir = "/runs/a\nnet";
  request.step = 3;
  request.slot = 1;
  const std::string definition = ProgramReplay::Definition(request, "/result");
  setenv("LOCKSTEP_REPLAY", definition.c_str() + definition.find('=') + 1, 1);
  const auto replay = ProgramReplay::FromEnvironment();
  ASSERT_TRUE(replay.ok()) << replay.status();
  ASSERT_TRUE(replay->has_value());
  EXPECT_EQ((*replay)->logdir(), "/runs/a\nnet");
}

TEST_F(ProgramReplayTest, OneProcessClaimsTheReplay) {
  const std::string result = absl::StrCat(getenv("TEST_TMPDIR"), "/result");
  ReplayRequest request;
  request.logdir = "/run";
  request.step = 1;
  const std::string definition = ProgramReplay::Definition(request, result);
  setenv("LOCKSTEP_REPLAY", definition.c_str() + definition.find('=') + 1, 1);
  const auto replay = ProgramReplay::FromEnvironment().value().value();
  EXPECT_EQ(replay.Claim(), absl::OkStatus());
  EXPECT_EQ(replay.Claim(), absl::OkStatus());
  ASSERT_EQ(WriteFileAtomically(FileSystem::Real(), ProgramReplay::ClaimOf(result), "1"), absl::OkStatus());
  EXPECT_THAT(std::string(replay.Claim().message()), HasSubstr("process 1 of this program has the slots"));
}

TEST_F(ProgramReplayTest, WrongRequest) {
  setenv("LOCKSTEP_REPLAY", "yes", 1);
  const absl::Status status = ProgramReplay::FromEnvironment().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("LOCKSTEP_REPLAY is wrong: lockstep replay: takes --logdir"));
}

}  // namespace
}  // namespace lockstep
