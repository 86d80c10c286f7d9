#include "lockstep/worker/data/formats/open_dataset.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/data/formats/testing/idx_encoder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

config::v1::InputConfig Parse(const std::string& text) {
  config::v1::InputConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

class OpenDatasetTest : public ::testing::Test {
 protected:
  OpenDatasetTest() {
    EXPECT_TRUE(fs_.CreateDirectory("/data").ok());
    EXPECT_TRUE(WriteFileAtomically(&fs_, "/data/images", EncodeIdx({1, 1, 2}, absl::string_view("\0\xff", 2))).ok());
    EXPECT_TRUE(WriteFileAtomically(&fs_, "/data/labels", EncodeIdx({1}, "\1")).ok());
    options_.fs = &fs_;
    options_.base_directory = "/data";
  }

  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& config, const std::string& split) {
    return OpenDataset(Parse(config), split, 1, options_);
  }

  MemoryFileSystem fs_;
  DatasetOptions options_;
};

TEST_F(OpenDatasetTest, FindsFilesFromTheBaseDirectory) {
  for (const std::string prefix : {"", "/data/"}) {
    auto dataset =
        Open("split { name: 'train' idx { images: '" + prefix + "images' labels: '" + prefix + "labels' } }", "train");
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ((*dataset)->spec().classes, 2);
  }
}

TEST_F(OpenDatasetTest, NormalizesEveryKind) {
  Batch batch;
  auto idx = Open("split { idx { images: 'images' labels: 'labels' } } normalization { mean: 0.5 stddev: 0.5 }", "");
  ASSERT_TRUE((*idx)->Read({0}, &batch).ok());
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(-1.0f, 1.0f));
  const std::string synthetic = "split { synthetic { examples: 2 shape: 11 classes: 2 } }";
  auto plain = Open(synthetic, "");
  ASSERT_TRUE((*plain)->Read({0, 1}, &batch).ok());
  auto normalized = Open(synthetic + " normalization { mean: 3 stddev: 0.1 }", "");
  Batch changed;
  ASSERT_TRUE((*normalized)->Read({0, 1}, &changed).ok());
  for (int i = 0; i < 22; ++i) {
    EXPECT_EQ(changed.features.flat<float>()[i], (batch.features.flat<float>()[i] - 3.0f) / 0.1f);
  }
}

TEST_F(OpenDatasetTest, LeavesIdsAsTheyAre) {
  auto ids = Open(
      "split { synthetic { kind: SEQUENCE examples: 2 shape: 3 classes: 2 vocabulary: 5 } } "
      "normalization { mean: 3 }",
      "");
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ((*ids)->spec().features_dtype, v1::DT_INT32);
}

TEST_F(OpenDatasetTest, RefusesAFileThatIsNamedTwice) {
  for (const std::string name : {"a.csv", "b.csv"}) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, "/data/" + name, "x,y\n1,0\n").ok());
  }
  const auto open = [&](const std::string& files) {
    return Open("split { csv { file: [" + files + "] column { name: 'x' } column { name: 'y' type: LABEL } } }", "");
  };
  EXPECT_EQ(open("'a.csv', 'b*.csv'").value()->size(), 2);
  const absl::Status twice = open("'*.csv', '/data/b.csv'").status();
  EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(twice.message(),
            "/data/b.csv is named twice, by \"*.csv\" and by \"/data/b.csv\"; its examples would be read twice");
}

TEST_F(OpenDatasetTest, NamesTheErrorInTheConfiguration) {
  const absl::Status absent = Open("split { name: 'train' } split { name: 'test' }", "validation").status();
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(absent.message()), HasSubstr("no split \"validation\", it has \"train\", \"test\""));
  const absl::Status empty = Open("split { name: 'train' }", "train").status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(empty.message()), HasSubstr("split \"train\" has no source"));
  const absl::Status stddev = Open("split { name: 'train' } normalization { stddev: 0 }", "train").status();
  EXPECT_THAT(std::string(stddev.message()), HasSubstr("stddev 0"));
}

}  // namespace
}  // namespace lockstep
