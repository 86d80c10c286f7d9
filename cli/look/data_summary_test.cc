#include "lockstep/cli/look/data_summary.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Dataset> Open(MemoryFileSystem* fs, const std::string& csv, const std::string& columns) {
  EXPECT_EQ(WriteFileAtomically(fs, "f.csv", csv), absl::OkStatus());
  config::v1::InputConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "on_damage: SKIP_AND_COUNT split { name: 'train' csv { separator: ',' file: 'f.csv' " + columns + " } }",
      &config));
  DatasetOptions options;
  options.fs = fs;
  return OpenDataset(config, "train", 1, options).value();
}

constexpr char kColumns[] =
    "column { name: 'id' type: ID } column { name: 'a' } column { name: 'b' } "
    "column { name: 'y' type: LABEL }";

TEST(DataSummaryTest, CountsLabelsAndMeasuresFeatures) {
  MemoryFileSystem fs;
  const auto data = Open(&fs, "id,a,b,y\nu,1,10,0\nv,3,20,2\nw,damaged,1,1\nx,5,30,2\n", kColumns);
  const DataSummary summary = Summarize(*data, 100).value();
  EXPECT_EQ(summary.examples, 3);
  EXPECT_THAT(summary.labels, ElementsAre(1, 0, 2));
  EXPECT_EQ(summary.features.least, 1);
  EXPECT_EQ(summary.features.greatest, 30);
  EXPECT_EQ(summary.columns[0].mean, 3);
  EXPECT_NEAR(summary.columns[1].stddev, 8.165, 1e-3);
  const std::string text = SummaryText(summary, {"cat", "dog", "emu"});
  EXPECT_THAT(text, HasSubstr("    2  emu          2  66.7 %\n"));
  EXPECT_THAT(text, HasSubstr("feature b        10        30    20    8.16497\n"));
}

TEST(DataSummaryTest, TheTableHasRowsAndIds) {
  MemoryFileSystem fs;
  const auto data = Open(&fs, "id,a,b,y\nu,1,10,0\nw,damaged,1,1\nx,5,30,2\n", kColumns);
  EXPECT_EQ(ExampleTable(*data, {0, 1}, {"cat", "dog", "emu"}).value(),
            "row  id  label  features\n"
            "  0  u   0 cat  1 10\n"
            "  2  x   2 emu  5 30\n");
}

TEST(DataSummaryTest, TargetsAreMeasured) {
  MemoryFileSystem fs;
  const auto data = Open(&fs, "a,t\n1,4\n2,8\n", "column { name: 'a' } column { name: 't' type: TARGET }");
  const DataSummary summary = Summarize(*data, 100).value();
  EXPECT_TRUE(summary.labels.empty());
  EXPECT_EQ(summary.targets[0].mean, 6);
  EXPECT_THAT(SummaryText(summary, {}), HasSubstr("target t "));
  EXPECT_THAT(ExampleTable(*data, {1}, {}).value(), HasSubstr("  1  8        2\n"));
}

TEST(DataSummaryTest, OneHotFeaturesHaveNumbers) {
  MemoryFileSystem fs;
  const auto data = Open(&fs, "a,c,t\n1,u,4\n2,v,8\n",
                         "column { name: 'a' } column { name: 'c' type: CATEGORY one_hot: true } "
                         "column { name: 't' type: TARGET }");
  EXPECT_THAT(SummaryText(Summarize(*data, 100).value(), {}), HasSubstr("feature 2 "));
}

TEST(DataSummaryTest, ExamplesAreSpreadEvenly) {
  EXPECT_THAT(SpreadExamples(10, 3), ElementsAre(0, 3, 6));
  EXPECT_THAT(SpreadExamples(2, 5), ElementsAre(0, 1));
}

}  // namespace
}  // namespace lockstep
