#include "lockstep/cli/guess/csv_guess.h"

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/guess/csv_sample.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Csv = config::v1::InputConfig::Csv;

class CsvGuessTest : public ::testing::Test {
 protected:
  CsvSample Sample(const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "t.csv", text).ok());
    auto sample = SampleCsv(&fs_, "t.csv");
    EXPECT_TRUE(sample.ok()) << sample.status();
    return sample.ok() ? *sample : CsvSample();
  }

  // Returns the guessed configuration, which must be valid.
  config::v1::RunSpec Guess(const std::string& text, const std::string& label = "") {
    const CsvSample sample = Sample(text);
    const auto guess = GuessColumns(sample, label);
    EXPECT_TRUE(guess.ok()) << guess.status();
    config::v1::RunSpec config;
    if (!guess.ok()) return config;
    const std::string written = ConfigurationFor(sample, *guess, "../t.csv");
    EXPECT_TRUE(ParseTextProto(written, "t", &config).ok()) << written;
    ApplyDefaults(&config);
    EXPECT_EQ(ValidateRunSpec(config), absl::OkStatus()) << written;
    return config;
  }

  static std::string Rows(const std::string& header, int rows, const std::function<std::string(int)>& row) {
    std::string text = header;
    for (int i = 0; i < rows; ++i) absl::StrAppend(&text, row(i), "\n");
    return text;
  }

  MemoryFileSystem fs_;
};

TEST_F(CsvGuessTest, ReadsAMessyTable) {
  const std::string text = Rows("PassengerId;Age;Town;Note;Constant;Survived\n", 60, [](int i) {
    return absl::StrCat(i, ";", i % 7 == 0 ? "NA" : absl::StrCat(20 + i, ".5"), ";",
                        i % 3 == 0   ? "Rome"
                        : i % 3 == 1 ? ""
                                     : "Oslo",
                        ";text ", i, ";1;", i % 2 ? "yes" : "no");
  });
  const config::v1::RunSpec config = Guess(text);
  const Csv& csv = config.input().split(0).csv();
  EXPECT_EQ(csv.separator(), ";");
  EXPECT_THAT(csv.file(), ElementsAre("../t.csv"));
  ASSERT_EQ(csv.column_size(), 4) << "a constant and a text that never repeats are left out";
  EXPECT_EQ(csv.column(0).type(), Csv::ID);
  EXPECT_EQ(csv.column(1).type(), Csv::FLOAT);
  EXPECT_TRUE(csv.column(1).standardize() && csv.column(1).missing().mean());
  EXPECT_THAT(csv.column(2).category(), ElementsAre("Oslo", "Rome", "missing"));
  EXPECT_EQ(csv.column(2).missing().default_(), "missing");
  EXPECT_EQ(csv.column(3).type(), Csv::LABEL);
  EXPECT_THAT(csv.column(3).category(), ElementsAre("no", "yes"));
  EXPECT_EQ(config.model().layer(1).dense().units(), 2);
}

TEST_F(CsvGuessTest, ClassesThatBeginAtOneAreListed) {
  const config::v1::RunSpec config = Guess(Rows("a,y\n", 30, [](int i) { return absl::StrCat(i, ".5,", 1 + i % 3); }));
  EXPECT_THAT(config.input().split(0).csv().column(1).category(), ElementsAre("1", "2", "3"));
  EXPECT_EQ(config.model().layer(1).dense().units(), 3);
}

TEST_F(CsvGuessTest, ManyNumbersAreATarget) {
  const config::v1::RunSpec config =
      Guess(Rows("price,rooms\n", 40, [](int i) { return absl::StrCat(1000 * i, ",", i % 5); }), "price");
  EXPECT_EQ(config.input().split(0).csv().column(0).type(), Csv::TARGET);
  EXPECT_TRUE(config.model().loss(0).has_mean_squared_error());
}

TEST_F(CsvGuessTest, TheOutputHasTheScaleOfTheTarget) {
  const std::string text = Rows("a,price\n", 40, [](int i) { return absl::StrCat(i, ".5,", i % 2 ? 3000.5 : 1000.5); });
  const config::v1::RunSpec config = Guess(text);
  const auto& output = config.model().layer(1).dense();
  EXPECT_TRUE(output.kernel_initializer().has_zeros());
  EXPECT_EQ(output.bias_initializer().constant().value(), 2000.5f);
  ASSERT_EQ(config.optimizer().group_size(), 1);
  EXPECT_EQ(config.optimizer().group(0).rate_factor(), 1000);
  EXPECT_EQ(Guess(Rows("a,y\n", 40, [](int i) { return absl::StrCat(i, ".5,", i % 2); })).optimizer().group_size(), 0);
}

TEST_F(CsvGuessTest, AFewRowsAreNotDivided) {
  const auto row = [](int i) { return absl::StrCat(i, ".5,", i % 2); };
  EXPECT_EQ(Guess(Rows("a,y\n", 9, row)).input().test_fraction(), 0);
  EXPECT_GT(Guess(Rows("a,y\n", 10, row)).input().test_fraction(), 0);
}

TEST_F(CsvGuessTest, ATableMayHaveNoHeaderLine) {
  const config::v1::RunSpec config =
      Guess(Rows("", 30, [](int i) { return absl::StrCat(i, ".5\t7\t", i % 2 ? "b" : "a"); }));
  const Csv& csv = config.input().split(0).csv();
  EXPECT_TRUE(csv.no_header());
  EXPECT_EQ(csv.separator(), "\t");
  ASSERT_EQ(csv.column_size(), 3);
  EXPECT_EQ(csv.column(1).type(), Csv::SKIP);
}

TEST_F(CsvGuessTest, ANameThatIsThereTwiceIsAHeaderToo) {
  const std::string text = Rows("a,b,,b,y,\n", 30, [](int i) { return absl::StrCat(i, ".5,1,2,3,", i % 2, ","); });
  const CsvSample sample = Sample(text);
  EXPECT_TRUE(sample.has_header);
  const auto guess = GuessColumns(sample, "");
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_EQ(guess->label, 4u);
  EXPECT_EQ(guess->columns[1].reason, "left out: its name is there twice");
  EXPECT_EQ(guess->columns[2].reason, "left out: it has no name");
  EXPECT_EQ(GuessColumns(sample, "b").status().message(), "the header line names b twice");
  EXPECT_EQ(Guess(text).input().split(0).csv().column_size(), 2);
}

TEST_F(CsvGuessTest, NumbersWithCommasAreNoWords) {
  const CsvSample sample = Sample(Rows("a;b;y\n", 30, [](int i) { return absl::StrCat(i, ",5;", i, ".5;", i % 2); }));
  const auto guess = GuessColumns(sample, "");
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_EQ(guess->columns[0].reason,
            "left out: its numbers have commas; write a point for decimals, and nothing between thousands");
  EXPECT_EQ(guess->columns[1].column.type(), Csv::FLOAT);
  EXPECT_EQ(GuessColumns(sample, "a").status().message(),
            "a has numbers with commas; write a point for decimals, and nothing between thousands");
}

TEST_F(CsvGuessTest, HexadecimalDigitsAreWords) {
  const config::v1::RunSpec config =
      Guess(Rows("a,code,y\n", 30, [](int i) { return absl::StrCat(i, ".5,0x", i % 3, ",", i % 2); }));
  EXPECT_EQ(config.input().split(0).csv().column(1).type(), Csv::CATEGORY);
}

TEST_F(CsvGuessTest, ErrorsNameTheReason) {
  const CsvSample sample = Sample("a,b\n1,2\n3,4\n");
  EXPECT_EQ(GuessColumns(sample, "c").status().message(), "--label=c is not a column; there are a, b");
  EXPECT_EQ(GuessColumns(Sample("a,a,b\n1,2,2\n1,3,4\n"), "").status().message(),
            "no column can be a feature; a: left out: its name is there twice; a: left out: its name is there twice");
  EXPECT_THAT(std::string(GuessColumns(Sample("a,b\n1,x\n3,x\n"), "").status().message()),
              HasSubstr("b has 1 value; name the column to predict with --label"));
  ASSERT_TRUE(WriteFileAtomically(&fs_, "t.csv", "just a note\n").ok());
  EXPECT_THAT(std::string(SampleCsv(&fs_, "t.csv").status().message()), HasSubstr("t.csv: no table"));
  ASSERT_TRUE(WriteFileAtomically(&fs_, "t.csv", "# of 2024\na,b\n1,2\n3,4\n").ok());
  EXPECT_EQ(
      SampleCsv(&fs_, "t.csv").status().message(),
      "t.csv:1: the first line has 1 fields, most have 2: \"# of 2024\"; the file must begin with its header line "
      "or its first row, with as many fields");
}

}  // namespace
}  // namespace lockstep
