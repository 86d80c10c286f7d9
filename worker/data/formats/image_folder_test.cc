#include "lockstep/worker/data/formats/image_folder.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/data/images/testing/image_encoder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageFolderTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& contents) {
    ASSERT_EQ(fs_.CreateDirectory(std::string(Dirname(path))), absl::OkStatus());
    ASSERT_EQ(WriteFileAtomically(&fs_, path, contents), absl::OkStatus());
  }

  void PutThree() {
    Put("/train/cat/1.png", EncodePng(TestImage(2, 2, 3, 1)));
    Put("/train/cat/2.jpg", EncodeJpeg(TestImage(8, 8, 3, 2)));
    Put("/train/dog/1.png", EncodePng(TestImage(2, 2, 1, 3)));
  }

  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& split = "train", const std::string& more = "",
                                                bool labels_optional = false) {
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("split { name: 'train' images { folder: '/train' form { height: 2 width: 2 } } }"
                     "split { name: 'test' images { folder: '/test' form { height: 2 width: 2 } } }",
                     more),
        &config));
    DatasetOptions options;
    options.fs = &fs_;
    options.index_directory = "/index";
    options.labels_optional = labels_optional;
    options.progress = [this](const IndexProgress& progress) { last_progress_ = progress; };
    return OpenDataset(config, split, 1, options);
  }

  MemoryFileSystem fs_;
  IndexProgress last_progress_;
};

TEST_F(ImageFolderTest, EachImageIsAnExampleOfItsFolder) {
  PutThree();
  const auto data = Open().value();
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->spec().features_shape, (Shape{2, 2, 3}));
  EXPECT_EQ(data->spec().classes, 2);
  EXPECT_EQ(data->id_name(), "file");
  EXPECT_EQ(data->ReadId(1).value(), "cat/2.jpg");
  EXPECT_THAT(data->digest().prepared(0).category(), ElementsAre("cat", "dog"));
  Batch batch;
  ASSERT_EQ(data->Read({2, 0}, &batch), absl::OkStatus());
  EXPECT_EQ(batch.labels.flat<int32_t>()[0], 1);
  EXPECT_EQ(batch.labels.flat<int32_t>()[1], 0);
  const ByteImage cat = TestImage(2, 2, 3, 1);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(batch.features.flat<float>()[12 + i], static_cast<float>(cat.pixels[i]) / 255.0f);
  }
  EXPECT_EQ(last_progress_.bytes_done, 3);
}

TEST_F(ImageFolderTest, AnotherSplitHasTheClassesOfTraining) {
  PutThree();
  Put("/test/dog/7.png", EncodePng(TestImage(2, 2, 3)));
  const auto data = Open("test").value();
  Batch batch;
  ASSERT_EQ(data->Read({0}, &batch), absl::OkStatus());
  EXPECT_EQ(batch.labels.flat<int32_t>()[0], 1);
  EXPECT_EQ(data->spec().classes, 2);
  Put("/test/emu/7.png", EncodePng(TestImage(2, 2, 3)));
  EXPECT_THAT(std::string(Open("test").status().message()), HasSubstr("/test/emu is the folder of no class"));
}

TEST_F(ImageFolderTest, ADamagedImageIsNamedOrLeftOut) {
  PutThree();
  Put("/train/cat/0.gif", "GIF89a");
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("/train/cat/0.gif: the image is GIF"));
  const auto data = Open("train", "on_damage: SKIP_AND_COUNT").value();
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->rows(), 4);
  EXPECT_EQ(data->RowAt(0).example, -1);
  EXPECT_EQ(data->RowAt(1).example, 0);
  EXPECT_EQ(data->RowAt(3).example, 2);
}

TEST_F(ImageFolderTest, TheDigestDependsOnPixelsAndClasses) {
  PutThree();
  const uint32_t digest = Open().value()->digest().crc32c();
  EXPECT_EQ(Open().value()->digest().crc32c(), digest);  // From the kept checksums.
  Put("/train/cat/1.png", EncodePng(TestImage(2, 2, 3, 1), {8, /*interlaced=*/true}));
  EXPECT_EQ(Open().value()->digest().crc32c(), digest);
  Put("/train/cat/1.png", EncodePng(TestImage(2, 2, 3, 9)));
  EXPECT_NE(Open().value()->digest().crc32c(), digest);
  PutThree();
  EXPECT_EQ(Open().value()->digest().crc32c(), digest);
}

TEST_F(ImageFolderTest, AnImageThatChangesIsAnError) {
  PutThree();
  const auto data = Open().value();
  Put("/train/cat/1.png", EncodePng(TestImage(2, 2, 3, 9)));
  Batch batch;
  EXPECT_EQ(data->Read({1}, &batch), absl::OkStatus());
  const absl::Status status = data->Read({0}, &batch);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/train/cat/1.png: is no longer the image"));
}

TEST_F(ImageFolderTest, ImagesWithoutClassesAreForPrediction) {
  PutThree();
  Put("/test/7.png", EncodePng(TestImage(2, 2, 3)));
  const auto data = Open("test", "", /*labels_optional=*/true).value();
  EXPECT_FALSE(data->has_labels());
  EXPECT_EQ(data->size(), 1);
  EXPECT_FALSE(Open("test").ok());
}

}  // namespace
}  // namespace lockstep
