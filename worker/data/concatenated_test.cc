#include "lockstep/worker/data/concatenated.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/io/testing/bytes_of.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/data/formats/testing/idx_encoder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConcatenatedTest : public ::testing::Test {
 protected:
  ConcatenatedTest() {
    EXPECT_TRUE(fs_.CreateDirectory("/d").ok());
    options_.fs = &fs_;
    options_.base_directory = "/d";
    WriteFloats("x-1.npy", {2, 2}, {0, 1, 2, 3});
    WriteFloats("x-2.npy", {1, 2}, {4, 5});
    WriteFloats("x-3.npy", {2, 2}, {6, 7, 8, 9});
    Write("y-1.npy", EncodeNpyHeader(v1::DT_INT32, {2}).value() + BytesOf<int32_t>({0, 1}));
    Write("y-2.npy", EncodeNpyHeader(v1::DT_INT32, {1}).value() + BytesOf<int32_t>({4}));
    Write("y-3.npy", EncodeNpyHeader(v1::DT_INT32, {2}).value() + BytesOf<int32_t>({2, 3}));
    WriteFloats("w-1.npy", {2}, {0.5f, 1});
    WriteFloats("w-2.npy", {1}, {2});
    WriteFloats("w-3.npy", {2}, {3, 4});
  }

  void Write(const std::string& name, const std::string& contents) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, "/d/" + name, contents).ok());
  }
  void WriteFloats(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    Write(name, EncodeNpyHeader(v1::DT_FLOAT, shape).value() + BytesOf(values));
  }
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& source) {
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("split { " + source + " }", &config));
    return OpenDataset(config, "", 1, options_);
  }

  MemoryFileSystem fs_;
  DatasetOptions options_;
};

constexpr char kAll[] = "npy { features: 'x-*.npy' labels: 'y-*.npy' weights: 'w-*.npy' }";

TEST_F(ConcatenatedTest, ReadsExamplesOfAllFiles) {
  const auto dataset = Open(kAll);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 5);
  EXPECT_EQ((*dataset)->spec().classes, 5);
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({4, 0, 2, 3, 2}, &batch).ok());
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(8, 9, 0, 1, 4, 5, 6, 7, 4, 5));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(3, 0, 4, 2, 4));
  EXPECT_THAT(batch.weights.flat<float>(), ElementsAre(4, 0.5f, 2, 3, 2));
}

TEST_F(ConcatenatedTest, ThePartsOfAnIdxSplitAreFilesToo) {
  Write("a-images", EncodeIdx({1, 1, 2}, absl::string_view("\0\xff", 2)));
  Write("b-images", EncodeIdx({2, 1, 2}, absl::string_view("\xff\xff\0\0", 4)));
  Write("a-labels", EncodeIdx({1}, "\2"));
  Write("b-labels", EncodeIdx({2}, absl::string_view("\0\1", 2)));
  const auto dataset = Open("idx { images: '?-images' labels: '?-labels' }");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().classes, 3);
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({1, 0}, &batch).ok());
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(0, 2));
}

TEST_F(ConcatenatedTest, TheDigestKnowsTheOrderOfTheParts) {
  const uint32_t before = (*Open(kAll))->digest().crc32c();
  EXPECT_EQ((*Open(kAll))->digest().crc32c(), before);
  WriteFloats("x-2.npy", {1, 2}, {4, 6});
  EXPECT_NE((*Open(kAll))->digest().crc32c(), before);
  WriteFloats("x-2.npy", {1, 2}, {4, 5});
  WriteFloats("x-1.npy", {2, 2}, {6, 7, 8, 9});
  WriteFloats("x-3.npy", {2, 2}, {0, 1, 2, 3});
  EXPECT_NE((*Open(kAll))->digest().crc32c(), before);
}

TEST_F(ConcatenatedTest, TheFilesTogetherAreHeldOrNot) {
  const auto change_of_file = [this] {
    const auto dataset = Open(kAll);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    fs_.FlipBits("/d/x-2.npy", 128, 1);
    Batch batch;
    const absl::Status changed = (*dataset)->Read({2}, &batch);
    fs_.FlipBits("/d/x-2.npy", 128, 1);
    return changed;
  };
  // Three headers of 128 bytes, and data of 16, 8 and 16 bytes.
  options_.held_bytes = 3 * 128 + 40;
  EXPECT_EQ(change_of_file(), absl::OkStatus());
  --options_.held_bytes;
  EXPECT_THAT(std::string(change_of_file().message()), HasSubstr("/d/x-2.npy: example 0 at byte 128 is no longer"));
}

TEST_F(ConcatenatedTest, NamesThePartOfAnotherForm) {
  WriteFloats("x-3.npy", {2, 1}, {6, 7});
  EXPECT_THAT(std::string(Open(kAll).status().message()),
              HasSubstr("/d/x-3.npy has float32[1] features, int32[] labels, weights; /d/x-1.npy has float32[2] "));
}

TEST_F(ConcatenatedTest, PatternsMustMatchAsManyFiles) {
  EXPECT_THAT(std::string(Open("npy { features: 'x-*.npy' labels: 'y-1.npy' }").status().message()),
              HasSubstr("npy.features stands for 3 files, npy.labels for 1"));
  EXPECT_THAT(std::string(Open("npz { file: 'z-*.npz' }").status().message()), HasSubstr("no file matches /d/z-*.npz"));
}

}  // namespace
}  // namespace lockstep
