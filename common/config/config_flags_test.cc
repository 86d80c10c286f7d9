#include "lockstep/common/config/config_flags.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr char kConfig[] = R"(
  model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
  input { split { name: "train" idx { images: "images" labels: "labels" } } batch_size: 8 }
  optimizer { sgd {} learning_rate { initial: 0.1 } }
  training { steps: 10 seed: 1 })";

class ConfigFlagsTest : public ::testing::Test {
 protected:
  ConfigFlagsTest() {
    EXPECT_TRUE(fs_.CreateDirectory("runs").ok());
    EXPECT_TRUE(WriteFileAtomically(&fs_, "runs/config", kConfig).ok());
  }
  // Parses the words. Returns true if they are valid.
  bool Parse(const std::vector<std::string>& words) {
    CommandLine command_line("test", "Tests.", "");
    flags_.Declare(&command_line);
    std::ostringstream out;
    std::ostringstream err;
    return !command_line.Parse(words, out, err).has_value();
  }

  MemoryFileSystem fs_;
  ConfigFlags flags_;
};

TEST_F(ConfigFlagsTest, FlagsOverrideTheFile) {
  ASSERT_TRUE(Parse({"runs/config", "--steps=20", "--seed=5", "--set=input.batch_size=4"}));
  const auto config = flags_.Load(&fs_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->training().steps(), 20);
  EXPECT_EQ(config->training().seed(), 5u);
  EXPECT_EQ(config->input().batch_size(), 4);
}

TEST_F(ConfigFlagsTest, FilesAreNamedByAbsolutePaths) {
  ASSERT_TRUE(Parse({"runs/config", "--set=checkpoint.warm_start=other/model.ckpt-1"}));
  const auto config = flags_.Load(&fs_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->input().split(0).idx().images(), AbsolutePath("runs/images"));
  EXPECT_EQ(config->checkpoint().warm_start(), AbsolutePath("other/model.ckpt-1"));
}

TEST_F(ConfigFlagsTest, ArgumentsReproduceTheConfiguration) {
  ASSERT_TRUE(Parse({"runs/config", "--steps=20", "--set=input.batch_size=4", "--seed=5"}));
  EXPECT_THAT(flags_.ToWords(),
              ElementsAre(AbsolutePath("runs/config"), "--steps=20", "--seed=5", "--set=input.batch_size=4"));
}

TEST_F(ConfigFlagsTest, AnErrorNamesTheFileAsTheUserDid) {
  ASSERT_TRUE(Parse({"runs/absent"}));
  EXPECT_TRUE(absl::IsNotFound(flags_.Load(&fs_).status()));
  ASSERT_TRUE(Parse({"runs/config", "--steps=-1"}));
  EXPECT_TRUE(absl::IsInvalidArgument(flags_.Load(&fs_).status()));
}

}  // namespace
}  // namespace lockstep
