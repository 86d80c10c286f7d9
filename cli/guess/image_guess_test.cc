#include "lockstep/cli/guess/image_guess.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/slim/nets/nets.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Put(MemoryFileSystem* fs, const std::string& path) {
  ASSERT_EQ(fs->CreateDirectory(std::string(Dirname(path))), absl::OkStatus());
  ASSERT_EQ(WriteFileAtomically(fs, path, "x"), absl::OkStatus());
}

config::v1::RunSpec Parse(const ImageConfiguration& options) {
  const auto text = ConfigurationFor(options);
  EXPECT_TRUE(text.ok()) << text.status();
  config::v1::RunSpec config;
  EXPECT_EQ(ParseTextProto(*text, "run.textproto", &config), absl::OkStatus());
  ApplyDefaults(&config);
  EXPECT_EQ(ValidateRunSpec(config), absl::OkStatus());
  return config;
}

TEST(ImageGuessTest, FindsClassesAndSplits) {
  MemoryFileSystem fs;
  Put(&fs, "/a/cat/1.png");
  Put(&fs, "/a/dog/1.png");
  ImageGuess guess = GuessImages(&fs, "/a").value();
  EXPECT_THAT(guess.classes, ElementsAre("cat", "dog"));
  EXPECT_EQ(guess.train, "/a");
  EXPECT_EQ(guess.test, "");
  EXPECT_EQ(guess.images, 2);
  Put(&fs, "/b/train/emu/1.png");
  Put(&fs, "/b/val/emu/1.png");
  guess = GuessImages(&fs, "/b").value();
  EXPECT_THAT(guess.classes, ElementsAre("emu"));
  EXPECT_EQ(guess.train, "/b/train");
  EXPECT_EQ(guess.test, "/b/val");
}

TEST(ImageGuessTest, EveryNetMakesACompleteConfiguration) {
  ImageConfiguration options = {"train", "test", 3, 500, 64};
  EXPECT_EQ(Parse(options).model().layer_size(), 12);
  EXPECT_EQ(Parse(options).training().steps(), 200);
  for (const std::string& net : train::slim::nets::NetNames()) {
    options.net = net;
    options.test.clear();
    const config::v1::RunSpec config = Parse(options);
    EXPECT_GT(config.model().layer_size(), 20) << net;
    EXPECT_GT(config.input().test_fraction(), 0);
  }
}

// tf-slim's 0.9997 keeps 94 % of the initial averages after 200 steps.
TEST(ImageGuessTest, AShortRunForgetsInitialAverages) {
  ImageConfiguration options = {"train", "test", 3, 500, 64, "mobilenet_v1"};
  EXPECT_EQ(Parse(options).training().steps(), 200);
  EXPECT_EQ(Parse(options).model().layer(1).batch_norm().decay(), 0.95f);
  options.images = 1 << 20;
  EXPECT_EQ(Parse(options).model().layer(1).batch_norm().decay(), 0.9995f);
}

TEST(ImageGuessTest, AFewImagesAreNotDivided) {
  EXPECT_EQ(Parse({"train", "", 3, 9, 64}).input().test_fraction(), 0);
  EXPECT_GT(Parse({"train", "", 3, 10, 64}).input().test_fraction(), 0);
}

TEST(ImageGuessTest, RefusesTooSmallImages) {
  EXPECT_THAT(std::string(ConfigurationFor({"train", "", 3, 0, 7}).status().message()), HasSubstr("7 pixels"));
  EXPECT_THAT(std::string(ConfigurationFor({"train", "", 3, 0, 64, "lenet"}).status().message()), HasSubstr("no net"));
}

}  // namespace
}  // namespace lockstep
