#include "lockstep/worker/data/formats/csv.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/worker/data/csv/csv_fields.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/data/formats/testing/idx_encoder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kColumns[] =
    "column { name: 'age' type: FLOAT } column { name: 'town' type: CATEGORY category: ['Rome', 'Oslo, N', 'a\"b'] } "
    "column { name: 'class' type: LABEL } column { name: 'weight' type: WEIGHT }";

std::vector<std::string> Fields(absl::string_view record, char separator = ',') {
  CsvFields fields(record, separator);
  std::vector<std::string> values;
  for (absl::string_view field; fields.Next(&field);) values.emplace_back(field);
  if (fields.damaged()) values.push_back("DAMAGED");
  return values;
}

TEST(CsvFieldsTest, SplitsAtSeparators) {
  EXPECT_THAT(Fields("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Fields("a,,"), ElementsAre("a", "", ""));
  EXPECT_THAT(Fields(""), ElementsAre(""));
  EXPECT_THAT(Fields("a\tb,c", '\t'), ElementsAre("a", "b,c"));
}

TEST(CsvFieldsTest, TakesQuotesOff) {
  EXPECT_THAT(Fields("\"a,b\",c"), ElementsAre("a,b", "c"));
  EXPECT_THAT(Fields("x,\"say \"\"hi\"\"\""), ElementsAre("x", "say \"hi\""));
  EXPECT_THAT(Fields("\"\",\"\"\"\""), ElementsAre("", "\""));
  EXPECT_THAT(Fields("\"two\nlines\""), ElementsAre("two\nlines"));
  // A quote is special only at the start of a field.
  EXPECT_THAT(Fields("5\" pipe,2"), ElementsAre("5\" pipe", "2"));
  EXPECT_THAT(Fields("1,\"open"), ElementsAre("1", "DAMAGED"));
  EXPECT_THAT(Fields("\"a\"b,2"), ElementsAre("DAMAGED"));
  EXPECT_THAT(Fields("1, \"a,b\" ,\t\"c\""), ElementsAre("1", "a,b", "c"));
  EXPECT_THAT(Fields("1\t\"a\"\t2", '\t'), ElementsAre("1", "a", "2"));
}

class CsvTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& contents, const std::string& csv,
                                                const std::string& input = "") {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "t.csv", contents).ok());
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("split { csv { file: '", file_, "' ", csv, " } } ", input), &config))
        << csv;
    DatasetOptions options;
    options.fs = &fs_;
    options.labels_optional = labels_optional_;
    options.labels_unchecked = labels_unchecked_;
    return OpenDataset(config, "", 1, options);
  }

  // Reads all examples of the file.
  Batch Read(const std::string& contents, const std::string& csv, const std::string& input = "") {
    auto dataset = Open(contents, csv, input);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    Batch batch;
    if (!dataset.ok()) return batch;
    spec_ = (*dataset)->spec();
    std::vector<int64_t> indices((*dataset)->size());
    std::iota(indices.begin(), indices.end(), 0);
    EXPECT_TRUE((*dataset)->Read(indices, &batch).ok());
    return batch;
  }

  void ExpectError(const std::string& contents, const std::string& csv, absl::StatusCode code,
                   const std::string& text) {
    const absl::Status status = Open(contents, csv).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  std::string file_ = "t.csv";
  bool labels_optional_ = false;
  bool labels_unchecked_ = false;
  MemoryFileSystem fs_;
  ExampleSpec spec_;
};

TEST_F(CsvTest, ReadsColumnsByTheirNames) {
  const Batch batch = Read("class,town,unused,age,weight\n1,\"Oslo, N\",?,30.5,2\n0,Rome,?,-1e3,0.5\n", kColumns);
  EXPECT_EQ(spec_.classes, 2);
  EXPECT_EQ(spec_.features_dtype, v1::DT_FLOAT);
  EXPECT_EQ(spec_.features_shape, Shape({2}));
  // The columns are in file order: town, age.
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 30.5, 0, -1000));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(1, 0));
  EXPECT_THAT(batch.weights.flat<float>(), ElementsAre(2, 0.5));
}

TEST_F(CsvTest, RefusesMoreColumnsThanALineHas) {
  for (const char* columns : {"column { count: 1000000000000 }", "column { count: 4194304 } column { count: 1 }"}) {
    ExpectError("1,0\n", absl::StrCat("no_header: true ", columns, " column { type: LABEL }"),
                absl::StatusCode::kInvalidArgument, "at most 4194304 columns are read");
  }
}

TEST_F(CsvTest, ReadsColumnsInOrderWithoutAHeader) {
  const Batch batch = Read("1;x;0.5\n2;y;1.5\n",
                           "no_header: true separator: ';' column { type: LABEL } column { type: SKIP } "
                           "column { type: FLOAT }");
  EXPECT_EQ(spec_.classes, 3);
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(0.5, 1.5));
  EXPECT_EQ(batch.weights.num_elements(), 0);
}

TEST_F(CsvTest, IntegersAloneAreIds) {
  const Batch batch = Read("a,b,y\n3,-4,cat\n5,6,dog\n",
                           "column { name: 'a' type: INT } column { name: 'b' type: INT } "
                           "column { name: 'y' type: LABEL category: ['dog', 'cat', 'cow'] }");
  EXPECT_EQ(spec_.features_dtype, v1::DT_INT32);
  EXPECT_EQ(spec_.classes, 3);
  EXPECT_THAT(batch.features.flat<int32_t>(), ElementsAre(3, -4, 5, 6));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(1, 0));
}

TEST_F(CsvTest, ReadsNumbersToBePredicted) {
  const Batch batch = Read("x,y,z\n1,2,3\n4,5,6",
                           "column { name: 'x' } column { name: 'z' type: TARGET } column { name: 'y' type: TARGET }");
  EXPECT_EQ(spec_.labels_dtype, v1::DT_FLOAT);
  EXPECT_EQ(spec_.labels_shape, Shape({2}));
  EXPECT_EQ(spec_.classes, 0);
  EXPECT_THAT(batch.labels.flat<float>(), ElementsAre(2, 3, 5, 6));
}

TEST_F(CsvTest, ReadsWindowsFilesAndBlankLines) {
  const Batch batch =
      Read("\xEF\xBB\xBFx,y\r\n1,0\r\n\r\n2,1\r\n  \n3,1", "column { name: 'x' } column { name: 'y' type: LABEL }");
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2, 3));
}

TEST_F(CsvTest, ReadsQuotedFieldsThatSpanLines) {
  const Batch batch = Read("\"x\",note,y\r\n\"1\",\"two\nlines, \"\"here\"\"\n\",0\r\n2,\"\",1\r\n",
                           "column { name: 'x' } column { name: 'y' type: LABEL }");
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2));
}

TEST_F(CsvTest, NamesTheDamagedLine) {
  const std::string xy = "column { name: 'x' } column { name: 'y' type: LABEL }";
  const auto expect = [&](const std::string& contents, const std::string& text) {
    ExpectError(contents, xy, absl::StatusCode::kDataLoss, text);
  };
  expect("x,y\n1,0\n2\n", "t.csv:3: 1 field, expected 2");
  expect("x,y\n1,0\n\n2,1,3\n", "t.csv:4: 3 fields, expected 2; a field with \",\" in it needs quotes");
  expect("x,y\nabc,0\n", "t.csv:2: column \"x\" is \"abc\", expected a finite number");
  expect("x,y\n0x10,0\n", "t.csv:2: column \"x\" is \"0x10\", expected a finite number");
  expect("x,y\n1,0\n1,0x1\n", "t.csv:3: column \"y\" is \"0x1\", expected a class");
  expect("x,y\nnan,0\n", "t.csv:2: column \"x\" is \"nan\"");
  expect("x,y\n1e99,0\n", "t.csv:2: column \"x\" is \"1e99\"");
  expect("x,y\n,0\n", "t.csv:2: column \"x\" is empty, expected a finite number; a column may have missing");
  expect("x,y\n1,1.5\n", "t.csv:2: column \"y\" is \"1.5\", expected a class");
  expect("x,y\n1,0\n1,cat\n",
         "t.csv:3: column \"y\" is \"cat\", expected a class, an integer of 32 bits; if labels are words");
  expect("x,y\n1,-1\n",
         "t.csv:2: column \"y\" is \"-1\", expected a class, 0 or greater; if its classes are other numbers, list");
  expect("\"x\",\"note\n\",y\n1,,0\n1,,99999999999\n", "t.csv:4: column \"y\"");
  expect("x,y\n1,0\n\"2,1\n3,1\n", "t.csv:3: a quoted field does not end");
  expect("x,y\n\"1\"2,0\n", "t.csv:2: field 0 has a quote in a wrong place");
  expect("", "t.csv:1: no header line");
  expect("x,y\n", "holds no example");
  ExpectError("age,town,class,weight\n1,Paris,0,1\n", kColumns, absl::StatusCode::kDataLoss,
              "t.csv:2: column \"town\" is \"Paris\", expected one of its 3 categories");
  ExpectError("age,town,class,weight\n1,Rome,0,-1\n", kColumns, absl::StatusCode::kDataLoss,
              "t.csv:2: column \"weight\" is \"-1\", expected a weight");
}

TEST_F(CsvTest, LeavesDamagedLinesOut) {
  const std::string xy = "column { name: 'x' } column { name: 'y' type: LABEL }";
  const Batch batch = Read("x,y\n1,0\nbad\n2,1\n3,\"1\n4,1\n5,x\n6,2\n", xy, "on_damage: SKIP_AND_COUNT");
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2, 4, 6));
  EXPECT_EQ(spec_.classes, 3);
}

TEST_F(CsvTest, LogsControlCharactersAsNumbers) {
  ::testing::internal::CaptureStderr();
  Read("x,y\n1,0\n\x1b[2J,1\n", "column { name: 'x' } column { name: 'y' type: LABEL }", "on_damage: SKIP_AND_COUNT");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("column \"x\" is \"\\x1b[2J\", expected"));
}

TEST_F(CsvTest, NamesTheErrorInTheConfiguration) {
  const auto expect = [&](const std::string& csv, const std::string& text) {
    ExpectError("x,y,x2,x2\n1,0,0,0\n", csv, absl::StatusCode::kInvalidArgument, text);
  };
  expect("column { name: 'z' }",
         "t.csv:1: csv column \"z\" is not among the 4 of the header line: \"x\", \"y\", \"x2\", "
         "\"x2\"; the header line must be the first of the file");
  expect("column { name: 'X2' }", "\"x2\", \"x2\"; did you mean \"x2\"?");
  ExpectError("1,0.5\n2,1\n", "column { name: 'x' }", absl::StatusCode::kInvalidArgument,
              "the header line: \"1\", \"0.5\"; if the file has no header line, set no_header: true");
  expect("column { name: 'x2' }", "t.csv:1: csv column \"x2\" is named twice in the header line; rename one of them");
  ExpectError("x;y\n1;0\n", "column { name: 'x' }", absl::StatusCode::kInvalidArgument,
              "t.csv:1: csv column \"x\" is not among the 1 of the header line: \"x;y\"; the separator may be \";\"");
  expect("column { name: 'x' } column { name: 'x' }", "t.csv:1: csv column \"x\" is named twice");
  expect("column { name: 'x' }", "1 feature, 0 LABEL, 0 TARGET and 0 WEIGHT");
  expect("column { name: 'y' type: LABEL }", "0 feature, 1 LABEL");
  expect("", "0 feature");
  expect("column { name: 'x' category: 'a' }", "of type FLOAT has 1 categories");
  expect("column { name: 'x' type: CATEGORY category: 'a' category: 'a' }", "has the category \"a\" twice");
  expect("separator: '::'", "separator \"::\"");
  expect("separator: '\"'", "must be one byte, no quote");
}

TEST_F(CsvTest, ReadsGzippedFiles) {
  const std::string xy = "column { name: 'x' } column { name: 'y' type: LABEL }";
  const std::string text = "x,y\n1,0\n2,1\n";
  const uint32_t digest = Open(text, xy).value()->digest().crc32c();
  const Batch batch = Read(Gzip(text), xy);
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2));
  EXPECT_EQ(Open(Gzip(text), xy).value()->digest().crc32c(), digest);
  ExpectError(Gzip(text).substr(0, 20), xy, absl::StatusCode::kDataLoss, "t.csv: the compressed file ends early");
}

TEST_F(CsvTest, SkipsAByteOrderMarkAnywhere) {
  const std::string in_order = "no_header: true column { type: FLOAT } column { type: LABEL }";
  const Batch batch = Read(
      "\xEF\xBB\xBF\"1\",0\n2,1\n\xEF\xBB\xBF"
      "3,1\n\xEF\xBB\xBF\n",
      in_order);
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2, 3));
}

TEST_F(CsvTest, ReadsLatin1Words) {
  const std::string columns =
      "column { name: 'Gr\xC3\xB6\xC3\x9F"
      "e' } column { name: 'y' type: LABEL category: ['K\xC3\xB6ln', 'Rome'] }";
  for (const char* const text : {"Gr\xF6\xDF"
                                 "e,y\n1,K\xF6ln\n2,Rome\n",
                                 "Gr\xC3\xB6\xC3\x9F"
                                 "e,y\n1,K\xC3\xB6ln\n2, Rome \n"}) {
    EXPECT_THAT(Read(text, columns).labels.flat<int32_t>(), ElementsAre(0, 1));
  }
  ExpectError(
      "Gr\xF6\xDF"
      "e,y\n1,M\xFCnster\n",
      columns, absl::StatusCode::kDataLoss,
      "column \"y\" is \"M\\xfcnster\", which is not UTF-8 and is read as Latin-1, expected one of its 2");
  // An error shows 40 bytes at most, and never a part of a character.
  const std::string shown(39, 'x');
  ExpectError(absl::StrCat("Gr\xC3\xB6\xC3\x9F", "e,y\n1,", shown, "\xC3\xB6\n"), columns, absl::StatusCode::kDataLoss,
              absl::StrCat("column \"y\" is \"", shown, "\", expected one of its 2"));
}

TEST_F(CsvTest, AMissingFieldHasAMeaningPerColumn) {
  const std::string label = " column { name: 'y' type: LABEL }";
  const std::string text = "a,b,y\n1,5,0\n,6,1\nNA,7,1\n3,,0\n";
  const Batch batch =
      Read(text, "column { name: 'a' missing { mean: true } } column { name: 'b' missing { default: '-1' } }" + label);
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 5, 2, 6, 2, 7, 3, -1));
  const Batch left =
      Read(text, "column { name: 'a' missing { skip: true } } column { name: 'b' missing { skip: true } }" + label);
  EXPECT_THAT(left.features.flat<float>(), ElementsAre(1, 5));
  ExpectError(
      text, "column { name: 'a' } column { name: 'b' type: SKIP }" + label, absl::StatusCode::kDataLoss,
      "t.csv:3: column \"a\" is empty, expected a finite number; a column may have missing { default: \"...\" }, "
      "mean: true or skip: true");
  ExpectError("a,y\n0.5,0\n\"0,5\",1\n", "column { name: 'a' }" + label, absl::StatusCode::kDataLoss,
              "column \"a\" is \"0,5\", expected a finite number; it has a comma: write a point for decimals, nothing "
              "between thousands");
}

TEST_F(CsvTest, StandardizesByTheStatisticsOfItsRows) {
  const auto dataset = Open("a,b,y\n1,7,0\n3,7,1\n5,7,1\nx,7,0\n",
                            "column { name: 'a' standardize: true } column { name: 'b' standardize: true } "
                            "column { name: 'y' type: LABEL }",
                            "on_damage: SKIP_AND_COUNT");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0, 1, 2}, &batch).ok());
  const auto stddev = static_cast<float>(std::sqrt(8.0 / 3));
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(-2 / stddev, 0, 0, 0, 2 / stddev, 0));
  const v1::DataDigest digest = (*dataset)->digest();
  ASSERT_EQ(digest.prepared_size(), 2) << "the run's record has them";
  EXPECT_EQ(digest.prepared(0).column(), "a");
  EXPECT_EQ(digest.prepared(0).mean(), 3);
  EXPECT_EQ(digest.prepared(0).stddev(), stddev);
  EXPECT_EQ(digest.prepared(1).stddev(), 1) << "equal numbers become 0";
}

TEST_F(CsvTest, EachRangeColumnHasItsOwnStatistics) {
  const std::pair<const char*, const char*> cases[] = {
      {"no,1,10\nyes,3,50\n", "no_header: true column { type: LABEL } column { name: 'p' count: 2 standardize: true }"},
      {"y,p,q\nno,1,10\nyes,3,50\n",
       "column { name: 'y' type: LABEL } column { name: 'p' last: 'q' standardize: true }"}};
  for (const auto& [text, columns] : cases) {
    const Batch batch = Read(text, columns);
    EXPECT_THAT(batch.features.flat<float>(), ElementsAre(-1, -1, 1, 1)) << text;
    EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(0, 1));
  }
}

TEST_F(CsvTest, CategoriesMayBeListedOneHotOrHashed) {
  const std::string label = " column { name: 'y' type: LABEL }";
  const std::string text = "a,y\nred,0\nblue,1\nred,1\n";
  EXPECT_THAT(Read(text, "column { name: 'a' type: CATEGORY }" + label).features.flat<int32_t>(), ElementsAre(1, 0, 1));
  const Batch one_hot = Read(text, "column { name: 'a' type: CATEGORY one_hot: true }" + label);
  EXPECT_EQ(spec_.features_shape, Shape({2}));
  EXPECT_THAT(one_hot.features.flat<float>(), ElementsAre(0, 1, 1, 0, 0, 1));
  const Batch hashed = Read(text, "column { name: 'a' type: CATEGORY hash_buckets: 1000 }" + label);
  EXPECT_THAT(hashed.features.flat<int32_t>(),
              ElementsAre(StableHash("red") % 1000, StableHash("blue") % 1000, StableHash("red") % 1000));
  const Batch hot = Read(text, "column { name: 'a' type: CATEGORY hash_buckets: 4 one_hot: true }" + label);
  EXPECT_EQ(spec_.features_shape, Shape({4}));
  EXPECT_EQ(hot.features.flat<float>()[StableHash("red") % 4], 1);
}

TEST_F(CsvTest, LabelsThatAreWordsAreListed) {
  const std::string columns = "column { name: 'a' } column { name: 'y' type: LABEL }";
  const Batch batch = Read("a,y\n1,yes\n2, no\n3,\"maybe\"\n4,no\n", columns);
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(2, 1, 0, 1));
  EXPECT_EQ(spec_.classes, 3);
  const auto dataset = Open("a,y\n1,yes\n2,no\n", columns);
  EXPECT_EQ(dataset.value()->digest().prepared(0).column(), "a") << "the order of the features";
  EXPECT_THAT(dataset.value()->digest().prepared(1).category(), ElementsAre("no", "yes"));
  EXPECT_THAT(Read("a,y\n1,1.0\n2,0.0\n", columns).labels.flat<int32_t>(), ElementsAre(1, 0))
      << "as pandas writes them";
}

TEST_F(CsvTest, KnowsTheRowsThatHoldNoExample) {
  const auto dataset = Open("id,a,y\nu,1,0\nv,,1\n\nw,x,0\nz,4,1\n",
                            "column { name: 'id' type: ID } column { name: 'a' } column { name: 'y' type: LABEL }",
                            "on_damage: SKIP_AND_COUNT");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 2);
  ASSERT_EQ((*dataset)->rows(), 4);
  EXPECT_EQ((*dataset)->id_name(), "id");
  const int64_t examples[] = {0, -1, -1, 1};
  const char* const ids[] = {"u", "v", "w", "z"};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*dataset)->RowAt(i).example, examples[i]);
    EXPECT_EQ((*dataset)->ReadId(i).value(), ids[i]);
  }
}

TEST_F(CsvTest, NoticesThatTheFileHasChanged) {
  auto dataset = Open("x,y\n1,0\n2,1\n", "column { name: 'x' } column { name: 'y' type: LABEL }");
  ASSERT_TRUE(dataset.ok());
  fs_.FlipBits("t.csv", 8, 0x40);
  Batch batch;
  const absl::Status status = (*dataset)->Read({1}, &batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("t.csv: record 1 at byte 8 is no longer what was indexed"));
}

// For any bytes, opening either fails or yields examples that can all be read.
TEST_F(CsvTest, SurvivesHostileBytes) {
  const Philox philox(5, 6);
  std::string good = "age,town,class,weight\n";
  for (int i = 0; i < 12; ++i) {
    absl::StrAppend(&good, i, i % 2 ? ",Rome," : ",\"Oslo, N\",", i % 3, ",\"1\"\r\n");
  }
  int opened = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const Philox::Block block = philox.At(trial);
    std::string bytes = good;
    if (block[0] % 4 == 0) bytes.resize(block[1] % bytes.size());
    for (uint32_t flips = block[2] % 4; flips > 0 && !bytes.empty(); --flips) {
      bytes[philox.At(trial * 10 + flips + 1000000)[0] % bytes.size()] =
          "\",\n\r\0x1\xff"[philox.At(trial * 10 + flips + 1000000)[1] % 8];
    }
    const std::string input = trial % 2 == 0 ? "on_damage: SKIP_AND_COUNT" : "";
    auto dataset = Open(bytes, kColumns, input);
    if (!dataset.ok()) continue;
    ++opened;
    std::vector<int64_t> indices((*dataset)->size());
    std::iota(indices.begin(), indices.end(), 0);
    Batch batch;
    EXPECT_TRUE((*dataset)->Read(indices, &batch).ok());
    for (const int32_t label : batch.labels.flat<int32_t>()) EXPECT_LT(label, (*dataset)->spec().classes);
  }
  EXPECT_GT(opened, 1000);
  EXPECT_LT(opened, 3900);
}

TEST_F(CsvTest, ARangeOfColumnsIsOneEntry) {
  const std::string contents = "id,p1,p2,p3,y\n7,1,2,3,1\n8,4,5,6,0\n";
  for (const char* range : {"column { name: 'p1' last: 'p3' }", "column { name: 'p1' count: 3 }"}) {
    const Batch batch = Read(contents, absl::StrCat(range, " column { name: 'y' type: LABEL }"));
    EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(1, 0));
  }
  const Batch batch =
      Read("7,1,2,3,1\n", "no_header: true column { type: SKIP } column { count: 3 } column { type: LABEL }");
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2, 3));
  const auto error = [&](const std::string& columns) {
    return std::string(Open(contents, columns + " column { name: 'y' type: LABEL }").status().message());
  };
  EXPECT_EQ(error("column { name: 'p2' last: 'p1' }"),
            "t.csv:1: csv columns \"p2\" to \"p1\": there is no \"p1\" behind the first of them");
  EXPECT_EQ(error("column { name: 'p2' count: 9 }"),
            "t.csv:1: csv column \"p2\" and the 8 behind it: the header line has 2");
  EXPECT_EQ(error("column { name: 'p1' last: 'y' }"), "t.csv:1: csv column \"y\" is named twice");
}

TEST_F(CsvTest, APatternsFilesAreOneAfterTheOther) {
  EXPECT_TRUE(WriteFileAtomically(&fs_, "data-1.csv", "x,y\n1,0\n2,1\n").ok());
  EXPECT_TRUE(WriteFileAtomically(&fs_, "data-2.csv", "x,y\n3,2\n").ok());
  const std::string columns = "column { name: 'x' } column { name: 'y' type: LABEL }";
  const uint32_t digest = Open("x,y\n1,0\n2,1\n3,2\n", columns).value()->digest().crc32c();
  file_ = "data-*.csv";
  const Batch batch = Read("", columns);
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(0, 1, 2));
  EXPECT_EQ(spec_.classes, 3);
  EXPECT_EQ(Open("", columns).value()->digest().crc32c(), digest);
  EXPECT_TRUE(WriteFileAtomically(&fs_, "data-2.csv", "y,x\n2,3\n").ok());
  EXPECT_EQ(Open("", columns).status().message(), "data-2.csv: its header line is not that of data-1.csv");
  EXPECT_TRUE(WriteFileAtomically(&fs_, "data-2.csv", "x,y\n3,2\n").ok());
  file_ = "data-2.csv' file: 'data-1.csv";
  EXPECT_THAT(Read("", columns).features.flat<float>(), ElementsAre(3, 1, 2)) << "several files, in their order";
  file_ = "none-*.csv";
  EXPECT_EQ(Open("", columns).status().message(), "no file matches none-*.csv");
}

TEST_F(CsvTest, LabelsMayBeOptional) {
  const std::string columns = "column { name: 'x' } column { name: 'y' type: LABEL } column { name: 'w' type: WEIGHT }";
  EXPECT_TRUE(absl::IsInvalidArgument(Open("x\n1\n2\n", columns).status()));
  labels_optional_ = true;
  for (const auto& [contents, csv] :
       {std::pair<std::string, std::string>("x\n1\n2\n", columns), {"1\n2\n", "no_header: true " + columns}}) {
    const auto dataset = Open(contents, csv);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_FALSE((*dataset)->has_labels());
    EXPECT_FALSE((*dataset)->has_weights());
    const Batch batch = Read(contents, csv);
    EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2));
    EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(0, 0));
  }
  EXPECT_TRUE(Open("x,y,w\n1,2,1\n", columns).value()->has_labels());
}

TEST_F(CsvTest, LabelsMayBeUnchecked) {
  labels_unchecked_ = true;
  const std::string weight = " column { name: 'w' type: WEIGHT }";
  const Batch batch =
      Read("x,y,w\n1,,2\n2,1,1\n3,maybe,\n4,-1,-1\n", "column { name: 'x' } column { name: 'y' type: LABEL }" + weight);
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(-1, 1, -1, -1));
  EXPECT_THAT(batch.weights.flat<float>(), ElementsAre(2, 1, 1, 1));
  EXPECT_EQ(spec_.classes, 2);
  const std::string words = "column { name: 'x' } column { name: 'y' type: LABEL category: ['no', 'yes'] ";
  EXPECT_THAT(Read("x,y\n1,maybe\n2,yes\n", words + "}").labels.flat<int32_t>(), ElementsAre(-1, 1));
  EXPECT_THAT(Read("x,y\n1,\n2,yes\n", words + "missing { skip: true } }").labels.flat<int32_t>(), ElementsAre(-1, 1));
  EXPECT_THAT(Read("x,y\n1,?\n2,7\n", "column { name: 'x' } column { name: 'y' type: TARGET }").labels.flat<float>(),
              ElementsAre(0, 7));
  Read("x,y\n1,\n", "column { name: 'x' } column { name: 'y' type: LABEL }");
  EXPECT_EQ(spec_.classes, 1) << "no label is known";
  ExpectError("x,y\nbad,1\n", "column { name: 'x' } column { name: 'y' type: LABEL }", absl::StatusCode::kDataLoss,
              "column \"x\" is \"bad\"");
}

// Opens a test split whose columns may be in a different order than those of the train split.
class CsvOrderTest : public CsvTest {
 protected:
  absl::StatusOr<std::unique_ptr<Dataset>> OpenTest(const std::string& train, const std::string& test) {
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("split { name: 'test' csv { file: 'test.csv' ", test,
                     " } } split { name: 'train' csv { file: 'train.csv' ", train, " } }"),
        &config));
    DatasetOptions options;
    options.fs = &fs_;
    options.labels_optional = labels_optional_;
    return OpenDataset(config, "test", 1, options);
  }

  Batch ReadTest(const std::string& columns, const std::string& contents) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "test.csv", contents).ok());
    const auto dataset = OpenTest(columns, columns);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    Batch batch;
    if (!dataset.ok()) return batch;
    EXPECT_TRUE((*dataset)->Read({0}, &batch).ok());
    return batch;
  }

  std::string ErrorOf(const std::string& train, const std::string& test, const std::string& contents) {
    EXPECT_TRUE(WriteFileAtomically(&fs_, "test.csv", contents).ok());
    const absl::Status status = OpenTest(train, test).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }
};

TEST_F(CsvOrderTest, ColumnsFollowTheTrainSplitByName) {
  const std::string columns =
      "column { name: 'a' } column { name: 'b' } column { name: 'y' type: TARGET } column { name: 'z' type: TARGET }";
  ASSERT_TRUE(WriteFileAtomically(&fs_, "train.csv", "b,a,y,z\n2,1,8,9\n").ok());
  for (const char* contents : {"b,a,y,z\n2,1,8,9\n", "z,a,id,b,y\n9,1,0,2,8\n", "a,b,z,y\n1,2,9,8\n"}) {
    const Batch batch = ReadTest(columns, contents);
    EXPECT_THAT(batch.features.flat<float>(), ElementsAre(2, 1)) << contents;
    EXPECT_THAT(batch.labels.flat<float>(), ElementsAre(8, 9)) << contents;
  }
  labels_optional_ = true;
  EXPECT_THAT(ReadTest(columns, "a,b\n1,2\n").features.flat<float>(), ElementsAre(2, 1));
  ASSERT_TRUE(fs_.Remove("train.csv").ok());
  EXPECT_THAT(ReadTest(columns, "a,b\n1,2\n").features.flat<float>(), ElementsAre(1, 2)) << "nobody knows another";
}

TEST_F(CsvOrderTest, AnotherSplitIsReadAsTheTrainSplitWas) {
  const std::string columns =
      "column { name: 'a' standardize: true missing { mean: true } } column { name: 'c' type: CATEGORY one_hot: true } "
      "column { name: 'y' type: LABEL }";
  ASSERT_TRUE(WriteFileAtomically(&fs_, "train.csv", "a,c,y\n1,u,no\n3,v,yes\n").ok());
  const Batch batch = ReadTest(columns, "y,c,a\nyes,v,\n");
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(0, 0, 1)) << "the mean, and the second of two categories";
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(1));
  ASSERT_TRUE(fs_.Remove("train.csv").ok());
  EXPECT_THAT(ErrorOf(columns, columns, "a,c,y\n1,u,no\n"),
              HasSubstr("csv column \"a\" needs the mean and standard deviation of the training split"));
  const std::string prepared =
      " prepared { column: 'a' mean: 2 stddev: 1 } prepared { column: 'c' stddev: 1 category: ['u', 'v'] } "
      "prepared { column: 'y' stddev: 1 category: ['no', 'yes'] }";
  EXPECT_THAT(ReadTest(columns + prepared, "a,c,y\n5,u,yes\n").features.flat<float>(), ElementsAre(3, 1, 0));
}

TEST_F(CsvOrderTest, ARangeWithOtherColumnsIsRefused) {
  const std::string range = "column { name: 'p1' count: 2 } column { name: 'y' type: LABEL }";
  ASSERT_TRUE(WriteFileAtomically(&fs_, "train.csv", "p1,p2,p3,y\n1,2,3,0\n").ok());
  EXPECT_THAT(ReadTest(range, "y,p1,p2\n0,1,2\n").features.flat<float>(), ElementsAre(1, 2));
  EXPECT_EQ(ErrorOf(range, range, "p1,more,p2,y\n1,7,2,0\n"),
            "test.csv: the column of feature 1 is \"more\"; in train.csv, whose order is the model's, it is \"p2\"");
  const std::string to_last = "column { name: 'p1' last: 'p3' } column { name: 'y' type: LABEL }";
  EXPECT_EQ(ErrorOf(to_last, to_last, "p1,p3,y,p2\n1,3,0,2\n"),
            "test.csv: the column of feature 1 is \"p3\"; in train.csv, whose order is the model's, it is \"p2\"");
}

TEST_F(CsvOrderTest, RenamedColumnsKeepTheirPlaces) {
  const std::string label = " column { name: 'y' type: LABEL }";
  ASSERT_TRUE(WriteFileAtomically(&fs_, "train.csv", "a,b,y\n1,2,0\n").ok());
  ASSERT_TRUE(WriteFileAtomically(&fs_, "test.csv", "c,d,y\n1,2,0\n").ok());
  const std::string train = "column { name: 'a' } column { name: 'b' }" + label;
  const auto dataset = OpenTest(train, "column { name: 'd' } column { name: 'c' }" + label);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(ErrorOf(train, "column { name: 'a' } column { name: 'c' }" + label, "c,a,y\n1,2,0\n"),
            "test.csv: the column of feature 0 is \"c\"; in train.csv, whose order is the model's, it is \"a\"");
}

}  // namespace
}  // namespace lockstep
