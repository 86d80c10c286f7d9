#include "lockstep/worker/data/row_subset.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 200;

class RowSubsetTest : public ::testing::Test {
 protected:
  // Feature x of row i is i; every tenth row is damaged.
  RowSubsetTest() {
    std::string text = "x,y\n";
    for (int i = 0; i < kRows; ++i) absl::StrAppend(&text, i, i % 10 == 9 ? ",bad\n" : ",1\n");
    EXPECT_TRUE(WriteFileAtomically(&fs_, "t.csv", text).ok());
  }

  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& split, double fraction, uint64_t seed = 1,
                                                const std::string& column = "column { name: 'x' }") {
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("split { name: 'train' csv { file: 't.csv' ", column,
                     " column { name: 'y' type: LABEL } } } on_damage: SKIP_AND_COUNT test_fraction: ", fraction),
        &config));
    DatasetOptions options;
    options.fs = &fs_;
    return OpenDataset(config, split, seed, options);
  }

  // Returns the numbers of the split's rows. Checks that exactly every tenth row of the file holds no example and that
  // all other rows are read correctly.
  std::set<int64_t> Rows(const Dataset& dataset) {
    std::set<int64_t> rows;
    for (int64_t i = 0; i < dataset.rows(); ++i) {
      const Dataset::Row row = dataset.RowAt(i);
      rows.insert(row.number);
      EXPECT_EQ(row.example < 0, row.number % 10 == 9);
      if (row.example < 0) continue;
      Batch batch;
      EXPECT_TRUE(dataset.Read({row.example}, &batch).ok());
      EXPECT_EQ(batch.features.flat<float>()[0], static_cast<float>(row.number));
    }
    return rows;
  }

  MemoryFileSystem fs_;
};

TEST_F(RowSubsetTest, DividesRowsBySeedAndNumber) {
  const auto train = Open("train", 0.25), test = Open("test", 0.25);
  ASSERT_TRUE(train.ok() && test.ok()) << train.status() << test.status();
  const std::set<int64_t> in_train = Rows(**train), in_test = Rows(**test);
  EXPECT_EQ(in_train.size() + in_test.size(), size_t{kRows});
  EXPECT_GT(in_test.size(), 30u);
  EXPECT_LT(in_test.size(), 70u);
  for (int64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(in_test.count(row), IsTestRow(1, row, 0.25) ? 1u : 0u);
    EXPECT_NE(in_test.count(row), in_train.count(row));
  }
  EXPECT_NE(Rows(**Open("test", 0.25, /*seed=*/2)), in_test);
}

TEST_F(RowSubsetTest, ARowInASmallPartIsInALargerOne) {
  for (int64_t row = 0; row < 1000; ++row) {
    EXPECT_LE(IsTestRow(1, row, 0.1), IsTestRow(1, row, 0.2));
    EXPECT_FALSE(IsTestRow(1, row, 0));
  }
}

TEST_F(RowSubsetTest, TheDigestKnowsTheSelection) {
  EXPECT_EQ((*Open("train", 0.25))->digest().crc32c(), (*Open("train", 0.25))->digest().crc32c());
  EXPECT_NE((*Open("train", 0.25))->digest().crc32c(), (*Open("train", 0.26, 9))->digest().crc32c());
  EXPECT_NE((*Open("train", 0.25))->digest().crc32c(), (*Open("test", 0.25))->digest().crc32c());
}

TEST_F(RowSubsetTest, StatisticsComeFromTheTrainingRows) {
  const auto train = Open("train", 0.25, 1, "column { name: 'x' standardize: true }");
  ASSERT_TRUE(train.ok()) << train.status();
  double sum = 0;
  int64_t count = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    if (row % 10 == 9 || IsTestRow(1, row, 0.25)) continue;
    sum += static_cast<double>(row);
    ++count;
  }
  EXPECT_FLOAT_EQ((*train)->digest().prepared(0).mean(), static_cast<float>(sum / static_cast<double>(count)));
  const auto test = Open("test", 0.25, 1, "column { name: 'x' standardize: true }");
  EXPECT_EQ((*test)->digest().prepared(0).mean(), (*train)->digest().prepared(0).mean());
}

TEST_F(RowSubsetTest, AnUnknownSplitIsAnError) {
  EXPECT_EQ(Open("valid", 0.25).status().message(), "input has no split \"valid\", it has \"train\", \"test\"");
}

TEST_F(RowSubsetTest, AnEmptySplitIsAnError) {
  EXPECT_THAT(std::string(Open("test", 1e-9).status().message()), HasSubstr("leaves none of the 180 examples"));
}

}  // namespace
}  // namespace lockstep
