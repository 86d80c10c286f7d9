#include "lockstep/common/io/file_pattern.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class FilePatternTest : public ::testing::Test {
 protected:
  FilePatternTest() {
    EXPECT_TRUE(fs_.CreateDirectory("d").ok());
    for (const char* name :
         {"d/data-10.csv", "d/data-2.csv", "d/data-.csv", "d/data-1.csv.tmp", "d/.data-3.csv", "d/other"}) {
      EXPECT_TRUE(WriteFileAtomically(&fs_, name, "x").ok());
    }
  }
  std::vector<std::string> Match(const std::string& path) { return MatchFiles(&fs_, path).value(); }

  MemoryFileSystem fs_;
};

TEST_F(FilePatternTest, MatchesInTheOrderOfTheNames) {
  EXPECT_THAT(Match("d/data-*.csv"), ElementsAre("d/data-.csv", "d/data-10.csv", "d/data-2.csv"));
  EXPECT_THAT(Match("d/data-?.csv"), ElementsAre("d/data-2.csv"));
  EXPECT_THAT(Match("d/*1*.c*v"), ElementsAre("d/data-10.csv"));
  EXPECT_THAT(Match("d/*"), ElementsAre("d/data-.csv", "d/data-1.csv.tmp", "d/data-10.csv", "d/data-2.csv", "d/other"));
  EXPECT_THAT(Match("d/.*"), ElementsAre("d/.data-3.csv"));
  EXPECT_THAT(Match("d/**other**"), ElementsAre("d/other"));
}

TEST_F(FilePatternTest, APathThatIsNoPatternStandsForItself) {
  EXPECT_THAT(Match("d/absent"), ElementsAre("d/absent"));
  EXPECT_FALSE(IsFilePattern("a*/b"));
  EXPECT_TRUE(IsFilePattern("a/b?"));
}

TEST_F(FilePatternTest, NothingThatMatchesIsAnError) {
  const absl::Status status = MatchFiles(&fs_, "d/*.npz").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "no file matches d/*.npz");
  EXPECT_TRUE(absl::IsNotFound(MatchFiles(&fs_, "e/*").status()));
}

TEST_F(FilePatternTest, NamesAFolderOnWhichNothingIsMounted) {
  EXPECT_EQ(WhyAbsent(&fs_, "d/absent"), "");
  EXPECT_EQ(WhyAbsent(&fs_, "d/e/f/absent"), ": there is no directory d/e; is a volume to be mounted there?");
  ASSERT_TRUE(fs_.CreateDirectory("volume").ok());
  EXPECT_EQ(WhyAbsent(&fs_, "volume/data.csv"), ": volume is empty; is a volume to be mounted there?");
  EXPECT_EQ(MatchFiles(&fs_, "volume/*.csv").status().message(),
            "no file matches volume/*.csv: volume is empty; is a volume to be mounted there?");
}

}  // namespace
}  // namespace lockstep
