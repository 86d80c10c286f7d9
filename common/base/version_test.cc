#include "lockstep/common/base/version.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::StartsWith;

TEST(VersionTest, NamesThisBuild) {
  const Build build = ThisBuild();
  EXPECT_THAT(build.version, ContainsRegex("^[0-9]+\\.[0-9]+\\.[0-9]+$"));
  EXPECT_GE(build.arithmetic_version, 1);
  EXPECT_GE(build.layers_version, 1);
  EXPECT_GE(build.wire_version, 1);
  EXPECT_THAT(build.compiler, AnyOf(ContainsRegex("^GCC [0-9]+\\."), ContainsRegex("^Clang [0-9]+\\.")));
  EXPECT_FALSE(build.instruction_set.empty());
}

TEST(VersionTest, ATestIsNotStampedWithARevision) { EXPECT_EQ(ThisBuild().revision, ""); }

TEST(VersionTest, AVersionHasItsRevisionWhenItIsKnown) {
  Build build;
  build.version = "1.2.3";
  EXPECT_EQ(VersionText(build), "1.2.3");
  build.revision = "1a2b3c4-dirty";
  EXPECT_EQ(VersionText(build), "1.2.3 (revision 1a2b3c4-dirty)");
}

TEST(VersionTest, ABuildIsTwoLines) {
  Build build;
  build.version = "1.2.3";
  build.arithmetic_version = 4;
  build.layers_version = 6;
  build.wire_version = 5;
  build.compiler = "GCC 12.2.0";
  build.instruction_set = "AVX2";
  EXPECT_EQ(BuildText("lockstep chief", build),
            "lockstep chief 1.2.3\narithmetic version 4, layers version 6, wire version 5, GCC 12.2.0, AVX2\n");
  EXPECT_THAT(BuildText("lockstep", ThisBuild()), StartsWith("lockstep 0."));
}

}  // namespace
}  // namespace lockstep
