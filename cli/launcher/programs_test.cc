#include "lockstep/cli/launcher/programs.h"

#include <stdlib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/process.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(ProgramsTest, UsersProgramsDoNotInheritOurGrpc) {
  setenv("GRPC_EXPERIMENTS", kGrpcExperiments, 1);
  EXPECT_THAT(EnvWords(), ElementsAre("/usr/bin/env", "-u", "GRPC_EXPERIMENTS"));
  setenv("GRPC_EXPERIMENTS", "their_own", 1);
  EXPECT_THAT(EnvWords(), ElementsAre("/usr/bin/env"));
  unsetenv("GRPC_EXPERIMENTS");
  EXPECT_THAT(EnvWords(), ElementsAre("/usr/bin/env"));
}

}  // namespace
}  // namespace lockstep
