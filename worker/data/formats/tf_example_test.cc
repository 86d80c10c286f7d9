#include "lockstep/worker/data/formats/tf_example.h"

#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/v1/example.pb.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/data/images/testing/image_encoder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kImage[] = "feature_key: 'image' feature_shape: [1, 2, 1] label_key: 'label'";

// Returns a framed record. The arguments are Feature messages in text format.
std::string Record(const std::string& image, const std::string& label) {
  v1::Example example;
  auto* features = example.mutable_features()->mutable_feature();
  const auto parse = [](const std::string& text, v1::Feature* feature) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, feature)) << text;
  };
  if (!image.empty()) parse(image, &(*features)["image"]);
  if (!label.empty()) parse(label, &(*features)["label"]);
  return FrameRecord(example.SerializeAsString());
}

std::string Image(const std::string& bytes, int label) {
  return Record(absl::StrCat("bytes_list { value: '", bytes, "' }"), absl::StrCat("int64_list { value: ", label, " }"));
}

class TfExampleTest : public ::testing::Test {
 protected:
  // Opens files "0", "1", ... with these contents.
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::vector<std::string>& contents, const std::string& tfrecord,
                                                const std::string& input = "", bool labels_optional = false) {
    std::string files;
    for (size_t i = 0; i < contents.size(); ++i) {
      EXPECT_TRUE(WriteFileAtomically(&fs_, absl::StrCat(i), contents[i]).ok());
      absl::StrAppend(&files, "file: '", i, "' ");
    }
    config::v1::InputConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("split { tfrecord { ", files, tfrecord, " } } ", input), &config));
    DatasetOptions options;
    options.fs = &fs_;
    options.labels_optional = labels_optional;
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

  void ExpectDataLoss(const std::string& contents, const std::string& text) {
    const absl::Status status = Open({contents}, kImage).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  MemoryFileSystem fs_;
};

TEST_F(TfExampleTest, ReadsUnlabeledRecordsIfAllowed) {
  const std::string unlabelled = Record("bytes_list { value: '3f' }", "");
  EXPECT_FALSE(Open({unlabelled}, kImage).ok());
  const auto dataset = Open({unlabelled + Image("3f", 4)}, kImage, "", /*labels_optional=*/true);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_FALSE((*dataset)->has_labels());
  EXPECT_EQ((*dataset)->size(), 2);
  EXPECT_THAT(ReadAll(**dataset).labels.flat<int32_t>(), ElementsAre(0, 0)) << "a label that follows is not read";
  const auto labelled = Open({Image("3f", 4)}, kImage, "", /*labels_optional=*/true);
  ASSERT_TRUE(labelled.ok()) << labelled.status();
  EXPECT_TRUE((*labelled)->has_labels());
}

TEST_F(TfExampleTest, ReadsImagesOfSeveralFiles) {
  auto dataset = Open({Image("\\000\\377", 4) + Image("3f", 0), "", Image("\\063\\146", 2)}, kImage);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 3);
  EXPECT_EQ((*dataset)->spec().features_shape, Shape({1, 2, 1}));
  EXPECT_EQ((*dataset)->spec().classes, 5);
  const Batch batch = ReadAll(**dataset);
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(0, 1, 0.2f, 0.4f, 0.2f, 0.4f));
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(4, 0, 2));
  Batch last;
  ASSERT_TRUE((*dataset)->Read({2}, &last).ok());
  EXPECT_THAT(last.labels.flat<int32_t>(), ElementsAre(2));
}

constexpr char kEncoded[] = "feature_key: 'image' image { height: 2 width: 2 channels: 1 } label_key: 'label'";

std::string EncodedImage(const std::string& file, int label) { return Image(absl::CEscape(file), label); }

TEST_F(TfExampleTest, DecodesImagesOfAnySize) {
  const ByteImage small = TestImage(2, 2, 1), large = TestImage(9, 8, 3);
  const auto dataset = Open({EncodedImage(EncodePng(small), 1) + EncodedImage(EncodeJpeg(large), 3)}, kEncoded);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().features_shape, Shape({2, 2, 1}));
  const Batch batch = ReadAll(**dataset);
  EXPECT_THAT(batch.labels.flat<int32_t>(), ElementsAre(1, 3));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(batch.features.flat<float>()[i], static_cast<float>(small.pixels[i]) / 255.0f);
}

TEST_F(TfExampleTest, ADamagedImageIsADamagedRecord) {
  const std::string good = EncodePng(TestImage(2, 2, 1));
  const std::string bad = EncodedImage(good, 1) + EncodedImage(good.substr(0, 40), 1);
  const absl::Status status = Open({bad}, kEncoded).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("record 1 at byte"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("feature \"image\": the PNG image is damaged"));
  EXPECT_EQ(Open({bad}, kEncoded, "on_damage: SKIP_AND_COUNT").value()->size(), 1);
  EXPECT_THAT(
      std::string(Open({Record("float_list { value: 1 }", "int64_list { value: 1 }")}, kEncoded).status().message()),
      HasSubstr("has 1 floats, expected the bytes of one image"));
}

TEST_F(TfExampleTest, AnEncodedImageWithAShapeIsRecognized) {
  ExpectDataLoss(EncodedImage(EncodePng(TestImage(2, 2, 1)), 1), "it is an encoded image: give `image {");
}

TEST_F(TfExampleTest, ReadsFloatsAndTargets) {
  auto dataset = Open({Record("float_list { value: [0.5, -2] }", "float_list { value: [1, 2, 3] }")}, kImage);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().labels_shape, Shape({3}));
  EXPECT_EQ((*dataset)->spec().classes, 0);
  const Batch batch = ReadAll(**dataset);
  EXPECT_THAT(batch.features.flat<float>(), ElementsAre(0.5, -2));
  EXPECT_THAT(batch.labels.flat<float>(), ElementsAre(1, 2, 3));
}

TEST_F(TfExampleTest, ReadsIds) {
  auto dataset = Open({Record("int64_list { value: [7, 9] }", "int64_list { value: 1 }")}, kImage);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().features_dtype, v1::DT_INT32);
  EXPECT_THAT(ReadAll(**dataset).features.flat<int32_t>(), ElementsAre(7, 9));
}

TEST_F(TfExampleTest, IgnoresOtherFeatures) {
  v1::Example example;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "features { feature { key: 'image' value { bytes_list { value: 'ab' } } } "
      "feature { key: 'name' value { bytes_list { value: 'x' } } } "
      "feature { key: 'label' value { int64_list { value: 3 } } } }",
      &example));
  auto dataset = Open({FrameRecord(example.SerializeAsString())}, kImage);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(ReadAll(**dataset).labels.flat<int32_t>(), ElementsAre(3));
}

// TensorFlow 2.21's TFRecordWriter wrote the file, with features image (bytes 00 ff), pair (floats 0.5 -2) and label
// (3).
TEST_F(TfExampleTest, ReadsTensorFlowsRecords) {
  const std::string file = absl::HexStringToBytes(
      "39000000000000008b0737f10a370a0f0a05696d61676512060a040a0200ff0a0e0a056c6162656c12051a030a01030a140a047061697212"
      "0c"
      "120a0a080000003f000000c080d3ff06");
  auto images = Open({file}, kImage);
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_THAT(ReadAll(**images).features.flat<float>(), ElementsAre(0, 1));
  EXPECT_THAT(ReadAll(**images).labels.flat<int32_t>(), ElementsAre(3));
  auto pairs = Open({file}, "feature_key: 'pair' feature_shape: 2 label_key: 'pair'");
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_THAT(ReadAll(**pairs).features.flat<float>(), ElementsAre(0.5, -2));
}

TEST_F(TfExampleTest, NamesTheErrorInARecord) {
  const std::string good = Image("ab", 1);
  const std::string label = "int64_list { value: 1 }";
  ExpectDataLoss("", "0: holds no record");
  ExpectDataLoss(Record("", label), "0: record at byte 0: the example has no feature \"image\"");
  ExpectDataLoss(Record("", ""), "the example has no feature \"image\"; it has none");
  ExpectDataLoss(Record("bytes_list { value: 'abc' }", label), "\"image\" has 3 bytes, its shape [1,2,1] needs 2");
  ExpectDataLoss(Record("bytes_list { value: 'ab' }", ""), "no feature \"label\"");
  ExpectDataLoss(Record("bytes_list { value: 'ab' }", "int64_list { value: [1, 2] }"), "\"label\" has 2 integers");
  ExpectDataLoss(Record("bytes_list { value: 'ab' }", "bytes_list { value: 'a' }"), "expected one integer, or floats");
  ExpectDataLoss(FrameRecord("\xff\xff"), "not a tf.train.Example");
  // Damage after a good record.
  ExpectDataLoss(good + Image("abc", 1),
                 absl::StrCat("0: record 1 at byte ", good.size(), ": feature \"image\" has 3"));
  ExpectDataLoss(good + Image("ab", -1), "\"label\" holds -1, expected an integer from 0");
  ExpectDataLoss(good + Record("float_list { value: [1, 2] }", label), "has 2 floats, expected 2 bytes");
  ExpectDataLoss(good + Record("", label), "no feature \"image\"");
  ExpectDataLoss(good + FrameRecord("\xff\xff"), "not a tf.train.Example");
  ExpectDataLoss(good + good.substr(0, 5), "the file ends inside the record");
  ExpectDataLoss(good + good.substr(0, 20), "the file ends inside the record");
  std::string damaged = good;
  damaged[good.size() - 6] ^= 1;
  ExpectDataLoss(good + damaged, "the checksum of the record is wrong");
  damaged = good;
  damaged[1] ^= 1;
  ExpectDataLoss(good + damaged, "the checksum of the record's length is wrong");
  const absl::Status status =
      Open({Record("float_list { value: [1, nan] }", "int64_list { value: 1 }")}, kImage).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"image\" holds nan"));
}

TEST_F(TfExampleTest, LeavesDamagedRecordsOut) {
  const std::string good = Image("ab", 1);
  std::string bad_payload = good;
  bad_payload[good.size() - 6] ^= 1;
  std::string bad_length = good;
  bad_length[1] ^= 1;
  auto dataset = Open({bad_payload + FrameRecord("\xff") + good + bad_payload + good + bad_length + good, good}, kImage,
                      "on_damage: SKIP_AND_COUNT");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 3);
  ReadAll(**dataset);
}

TEST_F(TfExampleTest, NamesTheErrorInTheConfiguration) {
  EXPECT_THAT(std::string(Open({}, kImage).status().message()), HasSubstr("tfrecord.file is empty"));
  EXPECT_THAT(std::string(Open({Image("ab", 1)}, "feature_key: 'image' feature_shape: -1").status().message()),
              HasSubstr("feature_shape has -1"));
}

TEST_F(TfExampleTest, SurvivesHostileBytes) {
  const Philox philox(9, 10);
  std::string good;
  for (int i = 0; i < 8; ++i) good += Image("xy", i);
  int opened = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string bytes = good;
    const Philox::Block block = philox.At(trial);
    if (block[0] % 4 == 0) bytes.resize(block[1] % bytes.size());
    for (int flips = block[0] / 4 % 3; flips > 0 && !bytes.empty(); --flips) {
      bytes[(block[2] >> flips) % bytes.size()] ^= static_cast<char>(block[3] >> flips);
    }
    auto dataset = Open({bytes}, kImage, trial % 2 == 0 ? "on_damage: SKIP_AND_COUNT" : "");
    if (!dataset.ok()) {
      EXPECT_EQ(dataset.status().code(), absl::StatusCode::kDataLoss) << dataset.status();
      continue;
    }
    ++opened;
    ReadAll(**dataset);
  }
  EXPECT_GT(opened, 1000);
  EXPECT_LT(opened, 2900);
}

// Payloads with good checksums and hostile contents.
TEST_F(TfExampleTest, SurvivesHostilePayloads) {
  const Philox philox(11, 12);
  const std::string framed = Image("xy", 3);
  const std::string payload = framed.substr(12, framed.size() - 16);
  for (int trial = 0; trial < 3000; ++trial) {
    const Philox::Block block = philox.At(trial);
    std::string bytes = payload;
    bytes[block[0] % bytes.size()] ^= static_cast<char>(block[1]);
    bytes.resize(bytes.size() - block[2] % 3);
    auto dataset = Open({framed + FrameRecord(bytes)}, kImage);
    if (dataset.ok()) ReadAll(**dataset);
  }
}

}  // namespace
}  // namespace lockstep
