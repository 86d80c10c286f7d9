// Tests, for each format, which changes to the data change a split's digest.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/v1/example.pb.h"
#include "lockstep/worker/data/formats/open_dataset.h"

namespace lockstep {
namespace {

class DigestTest : public ::testing::Test {
 protected:
  DigestTest() { options_.fs = &fs_; }

  void Write(const std::string& path, absl::string_view contents) {
    ASSERT_TRUE(WriteFileAtomically(&fs_, path, contents).ok());
  }

  // Returns the digest of the split with this source. `rest` is the rest of the input's configuration.
  v1::DataDigest Digest(const std::string& source, const std::string& rest = "", uint64_t seed = 1) {
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("split { name: 'train' ", source, " } ", rest), &config));
    const auto dataset = OpenDataset(config, "train", seed, options_);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return dataset.ok() ? (*dataset)->digest() : v1::DataDigest();
  }

  // Returns true if no earlier digest had this checksum.
  bool IsNew(const v1::DataDigest& digest) { return seen_.insert(digest.crc32c()).second; }

  MemoryFileSystem fs_;
  DatasetOptions options_;
  std::set<uint32_t> seen_;
};

constexpr char kCsv[] =
    "csv { file: 'data' column { name: 'x' } column { name: 'y' type: LABEL } column { name: 'w' type: WEIGHT } }";

TEST_F(DigestTest, OfCsvCoversFeaturesLabelsAndWeights) {
  Write("data", "x,y,w\n1,0,1\n2,1,1\n");
  const v1::DataDigest digest = Digest(kCsv);
  EXPECT_EQ(digest.examples(), 2);
  EXPECT_TRUE(IsNew(digest));
  for (const std::string rows :
       {"1,0,1\n3,1,1\n", "1,0,1\n2,0,1\n", "1,0,1\n2,1,2\n", "2,1,1\n1,0,1\n", "1,0,1\n", "1,0,1\n2,1,1\n2,1,1\n"}) {
    Write("data", "x,y,w\n" + rows);
    EXPECT_TRUE(IsNew(Digest(kCsv))) << rows;
  }
}

TEST_F(DigestTest, OfCsvIgnoresHowValuesAreWritten) {
  Write("data", "x,y,w\n1,0,1\n2,1,1\n");
  const uint32_t crc32c = Digest(kCsv).crc32c();
  Write("data", "unused,y,w,x\r\nfoo,0,1.0,\"1\"\r\n\r\nbar,1,1,2e0");
  EXPECT_EQ(Digest(kCsv).crc32c(), crc32c);
  // Has the same data, except that two columns are swapped.
  Write("data", "w,y,x\n1,0,1\n2,1,1\n");
  EXPECT_NE(Digest(kCsv).crc32c(), crc32c);
}

TEST_F(DigestTest, RecordsThatAreLeftOutAreNoPartOfIt) {
  Write("data", "x,y,w\n1,0,1\n2,1,1\n");
  const v1::DataDigest whole = Digest(kCsv);
  Write("data", "x,y,w\n1,0,1\nbad\n2,1,1\n");
  const v1::DataDigest left = Digest(kCsv, "on_damage: SKIP_AND_COUNT");
  EXPECT_EQ(left.examples(), 2);
  EXPECT_EQ(left.crc32c(), whole.crc32c());
  Write("data", "x,y,w\nbad\n2,1,1\n");
  const v1::DataDigest other = Digest(kCsv, "on_damage: SKIP_AND_COUNT");
  EXPECT_EQ(other.examples(), 1);
  EXPECT_NE(other.crc32c(), whole.crc32c());
}

TEST_F(DigestTest, OfTargetsAndIds) {
  const std::string source =
      "csv { file: 'data' column { name: 'x' type: INT } column { name: 'y' type: TARGET } column { name: 'z' type: "
      "TARGET } }";
  for (const std::string row : {"1,2,3", "2,2,3", "1,1,3", "1,2,4", "1,3,2"}) {
    Write("data", "x,y,z\n" + row);
    EXPECT_TRUE(IsNew(Digest(source))) << row;
  }
}

TEST_F(DigestTest, OfLibsvmIsOfFeaturesAndLabelsInOrder) {
  const std::string source = "libsvm { file: 'data' features: 3 }";
  for (const std::string text :
       {"0 1:1\n1 2:2\n", "0 1:1\n1 2:3\n", "0 1:1\n1 3:2\n", "0 1:1\n0 2:2\n", "1 2:2\n0 1:1\n", "0 1:1\n"}) {
    Write("data", text);
    EXPECT_TRUE(IsNew(Digest(source))) << text;
  }
  Write("data", "# a remark\n0 1:1.0 # another\n1 1:0 2:2\n");
  EXPECT_FALSE(IsNew(Digest(source)));
}

std::string ExampleRecord(float x, int64_t label, const std::string& unused) {
  v1::Example example;
  auto& feature = *example.mutable_features()->mutable_feature();
  feature["x"].mutable_float_list()->add_value(x);
  feature["x"].mutable_float_list()->add_value(0);
  feature["y"].mutable_int64_list()->add_value(label);
  feature["name"].mutable_bytes_list()->add_value(unused);
  return example.SerializeAsString();
}

class TfRecordDigestTest : public DigestTest {
 protected:
  void WriteRecords(const std::string& path, const std::vector<std::string>& records) {
    std::string contents;
    for (const std::string& record : records) contents += FrameRecord(record);
    Write(path, contents);
  }
};

constexpr char kTfRecord[] = "tfrecord { file: 'data' feature_key: 'x' feature_shape: 2 label_key: 'y' }";

TEST_F(TfRecordDigestTest, CoversUsedFeaturesInOrder) {
  const std::string a = ExampleRecord(1, 0, "a"), b = ExampleRecord(2, 1, "b");
  for (const auto& records : std::vector<std::vector<std::string>>{
           {a, b}, {b, a}, {a}, {a, b, b}, {a, ExampleRecord(3, 1, "b")}, {a, ExampleRecord(2, 0, "b")}}) {
    WriteRecords("data", records);
    EXPECT_TRUE(IsNew(Digest(kTfRecord)));
  }
  WriteRecords("data", {a, ExampleRecord(2, 1, "another name")});
  EXPECT_FALSE(IsNew(Digest(kTfRecord)));
}

TEST_F(TfRecordDigestTest, DoesNotDependOnTheSplitIntoFiles) {
  std::vector<std::string> records;
  for (int i = 0; i < 20; ++i) records.push_back(ExampleRecord(static_cast<float>(i), i % 3, ""));
  WriteRecords("data", records);
  const v1::DataDigest whole = Digest(kTfRecord);
  const std::string two = "tfrecord { file: 'one' file: 'two' feature_key: 'x' feature_shape: 2 label_key: 'y' }";
  for (const size_t first : {1, 7, 19}) {
    WriteRecords("one", {records.begin(), records.begin() + first});
    WriteRecords("two", {records.begin() + first, records.end()});
    const v1::DataDigest digest = Digest(two);
    EXPECT_EQ(digest.examples(), 20);
    EXPECT_EQ(digest.crc32c(), whole.crc32c());
  }
}

TEST_F(DigestTest, IsKeptWithTheIndex) {
  Write("data", "x,y,w\n1,0,1\n2,1,1\n");
  const uint32_t crc32c = Digest(kCsv).crc32c();
  options_.index_directory = "index";
  int reads = 0;
  options_.progress = [&reads](const IndexProgress&) { ++reads; };
  EXPECT_EQ(Digest(kCsv).crc32c(), crc32c);
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(Digest(kCsv).crc32c(), crc32c);
  EXPECT_EQ(reads, 1);
}

TEST_F(DigestTest, NoticesAFileOverwrittenInPlace) {
  Write("data", "x,y,w\n1,0,1\n2,1,1\n");
  config::v1::InputConfig config;
  ASSERT_TRUE(
      google::protobuf::TextFormat::ParseFromString(absl::StrCat("split { name: 'train' ", kCsv, " }"), &config));
  for (const char* directory : {"", "index"}) {
    options_.index_directory = directory;
    const auto dataset = *OpenDataset(config, "train", 1, options_);
    Batch batch;
    EXPECT_TRUE(dataset->Read({0, 1}, &batch).ok());
    for (const int place : {6, 8, 10}) {
      fs_.FlipBits("data", place, 2);  // 1 becomes 3, 0 becomes 2
      EXPECT_TRUE(dataset->Read({1}, &batch).ok());
      const absl::Status status = dataset->Read({0}, &batch);
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_EQ(status.message(), "data: record 0 at byte 6 is no longer what was indexed: it holds other values");
      fs_.FlipBits("data", place, 2);
    }
  }
}

TEST_F(DigestTest, OfSyntheticDataCoversItsWholeSource) {
  const std::vector<std::string> sources = {
      "shape: 5 classes: 3 examples: 20",
      "shape: 5 classes: 3 examples: 21",
      "shape: 5 classes: 4 examples: 20",
      "shape: 6 classes: 3 examples: 20",
      "shape: 5 classes: 3 examples: 20 noise: 0.5",
      "shape: 5 classes: 3 examples: 20 stream: 1",
      "kind: REGRESSION shape: 5 examples: 20",
      "kind: SEQUENCE shape: 5 classes: 3 vocabulary: 9 examples: 20",
      "kind: SEQUENCE shape: 5 classes: 3 vocabulary: 8 examples: 20",
  };
  for (const std::string& source : sources) {
    for (const uint64_t seed : {1, 2}) {
      const v1::DataDigest digest = Digest("synthetic { " + source + " }", "", seed);
      EXPECT_TRUE(IsNew(digest)) << source << " " << seed;
      EXPECT_EQ(Digest("synthetic { " + source + " }", "", seed).crc32c(), digest.crc32c());
    }
  }
}

// These settings are part of the configuration, which is compared separately.
TEST_F(DigestTest, NormalizationAndBatchesAreNoPartOfIt) {
  Write("data", "x,y,w\n1,0,1\n2,1,1\n");
  const uint32_t crc32c = Digest(kCsv).crc32c();
  EXPECT_EQ(Digest(kCsv, "normalization { mean: 3 } batch_size: 7 no_shuffle: true").crc32c(), crc32c);
}

}  // namespace
}  // namespace lockstep
