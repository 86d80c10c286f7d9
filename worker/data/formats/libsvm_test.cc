#include "lockstep/worker/data/formats/libsvm.h"

#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LibsvmTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& contents, const std::string& libsvm,
                                                const std::string& input = "") {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "a1a", contents).ok());
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("split { libsvm { file: 'a1a' ", libsvm, " } } ", input), &config));
    DatasetOptions options;
    options.fs = &fs_;
    return OpenDataset(config, "", 1, options);
  }

  Batch ReadAll(const Dataset& dataset) {
    std::vector<int64_t> indices(dataset.size());
    std::iota(indices.begin(), indices.end(), 0);
    Batch batch;
    const absl::Status status = dataset.Read(indices, &batch);
    EXPECT_TRUE(status.ok()) << status;
    return batch;
  }

  void ExpectError(const std::string& contents, const std::string& libsvm, const std::string& text) {
    const absl::Status status = Open(contents, libsvm).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  MemoryFileSystem fs_;
};

TEST_F(LibsvmTest, FillsUpWithZeros) {
  auto dataset = Open("2 1:0.5 4:-2\n# a comment\n\n0 2:1e-1 # another\r\n1", "features: 4");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().features_shape, Shape({4}));
  EXPECT_EQ((*dataset)->spec().classes, 3);
  const Batch batch = ReadAll(**dataset);
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(0.5, 0, 0, -2, 0, 0.1f, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(2, 0, 1));
}

TEST_F(LibsvmTest, ReadsIndicesFromZeroWhenAskedTo) {
  auto dataset = Open("1 0:5 2:7\n", "features: 3 zero_based: true");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(ReadAll(**dataset).features.flat<float>(), ElementsAre(5, 0, 7));
}

TEST_F(LibsvmTest, ReadsFilesOfOtherPrograms) {
  auto dataset = Open(
      "\xEF\xBB\xBF# mark, then a comment\n1 qid:4 2:5 1:3 # unsorted\n\xEF\xBB\xBF"
      "0 1:2\n",
      "features: 2");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(ReadAll(**dataset).features.flat<float>(), ElementsAre(3, 5, 2, 0));
  EXPECT_THAT(ReadAll(**dataset).labels.flat<int32_t>(), ElementsAre(1, 0));
}

TEST_F(LibsvmTest, MapsBinaryLabels) {
  auto dataset = Open("+1 1:1\n-1 1:2\n1.0 1:3\n", "features: 1 binary_labels: true");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().classes, 2);
  EXPECT_THAT(ReadAll(**dataset).labels.flat<int32_t>(), ElementsAre(1, 0, 1));
}

TEST_F(LibsvmTest, ReadsNumbersToBePredicted) {
  auto dataset = Open("24.5 1:1\n-3 1:2\n", "features: 1 regression: true");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().labels_dtype, v1::DT_FLOAT);
  EXPECT_THAT(ReadAll(**dataset).labels.flat<float>(), ElementsAre(24.5, -3));
}

TEST_F(LibsvmTest, NamesTheDamagedLine) {
  ExpectError("1 1:1\nx 1:1\n", "features: 2", "a1a:2: the label \"x\" is not a finite number");
  ExpectError("1 1:1\n1.5 1:1\n", "features: 2", "a1a:2: the label is 1.5, expected a class");
  ExpectError(
      "-1 1:1\n", "features: 2",
      "a1a:1: the label is -1, expected a class, 0 or greater; if the classes are -1 and +1, set binary_labels: true");
  ExpectError("1e300 1:1\n", "features: 2", "the label is 1e300");
  ExpectError("0 1:1\n", "features: 2 binary_labels: true", "the label is 0, expected -1 or +1");
  ExpectError("1 3:1\n", "features: 2", "a1a:1: index 3; indices go from 1 to 2");
  ExpectError("1 0:1\n", "features: 2",
              "index 0; indices go from 1 to 2; if the file's begin at 0, set zero_based: true");
  ExpectError("1 2:1 2:1\n", "features: 2", "index 2 is there twice");
  ExpectError("1 2:1 1:3 2:1\n", "features: 2", "index 2 is there twice");
  ExpectError("1 2:1 qid:3\n", "features: 2", "\"qid:3\" is not index:value");
  ExpectError("1 2:1\n", "features: 2 zero_based: true", "index 2; indices go from 0 to 1");
  ExpectError("1 2=1\n", "features: 2", "\"2=1\" is not index:value");
  ExpectError("1 2:0x10\n", "features: 2", "\"2:0x10\" is not index:value");
  ExpectError("0x1 2:1\n", "features: 2", "the label \"0x1\" is not a finite number");
  ExpectError("1 2:inf\n", "features: 2", "\"2:inf\" is not index:value");
  ExpectError("", "features: 2", "holds no example");
}

// As a float, the label would be infinite and would end the run in its first step.
TEST_F(LibsvmTest, NamesALabelBeyondFloat32) {
  ExpectError("3e38 1:1\n-1e39 1:1\n", "features: 1 regression: true",
              "a1a:2: the label -1e39 is beyond the range of float32");
}

TEST_F(LibsvmTest, NamesTheErrorInTheConfiguration) {
  ExpectError("1 1:1\n", "", "libsvm.features is 0");
  ExpectError("1 1:1\n", "features: 1099511627776", "libsvm.features is 1099511627776");
  ExpectError("1 1:1\n", "features: 1 binary_labels: true regression: true", "both binary_labels and regression");
}

TEST_F(LibsvmTest, SurvivesHostileBytes) {
  const Philox philox(7, 8);
  std::string good;
  for (int i = 0; i < 15; ++i) absl::StrAppend(&good, i % 3, " 1:", i, " 5:-0.5 8:1e3\n");
  int opened = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string bytes = good;
    const Philox::Block block = philox.At(trial);
    if (block[0] % 4 == 0) bytes.resize(block[1] % bytes.size());
    if (!bytes.empty()) bytes[block[2] % bytes.size()] ^= static_cast<char>(block[3]);
    auto dataset = Open(bytes, "features: 8", trial % 2 == 0 ? "on_damage: SKIP_AND_COUNT" : "");
    if (!dataset.ok()) continue;
    ++opened;
    ReadAll(**dataset);
  }
  EXPECT_GT(opened, 1000);
  EXPECT_LT(opened, 2900);
}

}  // namespace
}  // namespace lockstep
