// Goes from a folder of images to predictions with the commands that a user would run.
#include <stdlib.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/testing/called_command.h"
#include "lockstep/worker/data/images/decode_image.h"
#include "lockstep/worker/data/images/testing/image_encoder.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ImageCommandsTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) { return JoinPath(directory_, name); }

  // Writes a gray image of the given brightness with a little structure.
  void Put(const std::string& name, int brightness, bool as_png) {
    ByteImage image = {12, 10, 1, std::vector<uint8_t>(120, static_cast<uint8_t>(brightness))};
    for (int i = 0; i < 120; i += 7) image.pixels[i] += 9;
    ASSERT_EQ(fs_->CreateDirectory(std::string(Dirname(Path(name)))), absl::OkStatus());
    ASSERT_EQ(WriteFileAtomically(fs_, Path(name), as_png ? EncodePng(image) : EncodeJpeg(image)), absl::OkStatus());
  }

  FileSystem* const fs_ = FileSystem::Real();
  const std::string directory_ =
      absl::StrCat(getenv("TEST_TMPDIR"), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ImageCommandsTest, AFolderOfImagesTrainsAndPredicts) {
  for (int i = 0; i < 12; ++i) {
    Put(absl::StrCat("photos/train/dark/", i, i % 2 == 0 ? ".png" : ".jpg"), 20 + i, i % 2 == 0);
    Put(absl::StrCat("photos/train/light/", i, i % 2 == 0 ? ".png" : ".jpg"), 200 + i, i % 2 == 0);
  }
  for (const int i : {0, 1}) {
    Put(absl::StrCat("photos/val/dark/", i, ".png"), 30 + i, true);
    Put(absl::StrCat("photos/val/light/", i, ".png"), 220 + i, true);
    Put(absl::StrCat("inbox/", i, ".png"), i == 0 ? 25 : 210, true);
  }
  const std::string config = Path("run/run.textproto");
  const CalledCommand made = Call(NewCommand, {Path("run"), "--images=" + Path("photos"), "--image_size=8"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, StartsWith("found 24 images of 2 classes in "));

  const CalledCommand looked = Call(LookCommand, {config, "--examples=4", "--output=" + Path("sheet.png")});
  ASSERT_EQ(looked.exit_code, 0) << looked.err;
  EXPECT_THAT(looked.out, HasSubstr("train: 24 examples of float32[8,8,3]"));
  EXPECT_THAT(looked.out, HasSubstr("    1  light        12  50.0 %"));
  EXPECT_EQ(DecodeImage(ReadFile(fs_, Path("sheet.png")).value(), 3)->width, 2 * 96 + 18);

  const std::string logdir = "--logdir=" + Path("logdir");
  const CalledCommand trained = Call(LocalCommand, {config, logdir, "--steps=20"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const CalledCommand evaluated = Call(EvalCommand, {logdir, "--confusion=" + Path("classes.csv")});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, HasSubstr("precision"));
  EXPECT_THAT(ReadFile(fs_, Path("classes.csv")).value(),
              StartsWith("class,name,examples,precision,recall,f1,as_0,as_1\n0,dark,2,"));

  const CalledCommand predicted =
      Call(PredictCommand, {logdir, "--file=" + Path("inbox"), "--output=" + Path("answers.csv")});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(ReadFile(fs_, Path("answers.csv")).value(), StartsWith("example,file,class,class_name,output_0,output_1\n"
                                                                     "0,0.png,"));
}

TEST_F(ImageCommandsTest, MistakesAreNamed) {
  const CalledCommand no_net = Call(NewCommand, {Path("run"), "--net=lenet"});
  EXPECT_EQ(no_net.exit_code, 2);
  EXPECT_THAT(no_net.err, HasSubstr("there are vgg_16, inception_v1, resnet_v1_50, mobilenet_v1"));
  const CalledCommand no_folder = Call(NewCommand, {Path("run"), "--images=" + Path("none")});
  EXPECT_EQ(no_folder.exit_code, 2);
  EXPECT_THAT(no_folder.err, HasSubstr("none"));
  EXPECT_EQ(Call(LookCommand, {Path("none.textproto")}).exit_code, 2);
}

}  // namespace
}  // namespace lockstep
