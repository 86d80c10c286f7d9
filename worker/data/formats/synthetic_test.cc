#include "lockstep/worker/data/formats/synthetic.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

config::v1::InputConfig::Synthetic Parse(const std::string& text) {
  config::v1::InputConfig::Synthetic config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::unique_ptr<Dataset> Create(const std::string& text, uint64_t seed = 1) {
  auto dataset = CreateSyntheticDataset(Parse(text), seed);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return *std::move(dataset);
}

Batch ReadAll(const Dataset& dataset) {
  std::vector<int64_t> indices(dataset.size());
  std::iota(indices.begin(), indices.end(), 0);
  Batch batch;
  EXPECT_TRUE(dataset.Read(indices, &batch).ok());
  return batch;
}

TEST(SyntheticTest, ExamplesDependOnSeedStreamAndNumber) {
  for (const std::string kind : {"kind: CLASSIFICATION classes: 3 shape: 5", "kind: REGRESSION shape: 5",
                                 "kind: SEQUENCE shape: 5 classes: 3 vocabulary: 50"}) {
    const auto dataset = Create(kind + " examples: 20");
    const Batch all = ReadAll(*dataset);
    for (const int64_t index : {19, 0, 7}) {
      Batch one;
      ASSERT_TRUE(dataset->Read({index}, &one).ok());
      EXPECT_EQ(one.features.bytes(), all.features.bytes().substr(index * 20, 20)) << kind;
      EXPECT_EQ(one.labels.bytes(), all.labels.bytes().substr(index * 4, 4)) << kind;
    }
    EXPECT_EQ(ReadAll(*Create(kind + " examples: 20")).features.bytes(), all.features.bytes());
    EXPECT_NE(ReadAll(*Create(kind + " examples: 20", 2)).features.bytes(), all.features.bytes());
    EXPECT_NE(ReadAll(*Create(kind + " examples: 20 stream: 1")).features.bytes(), all.features.bytes());
  }
}

TEST(SyntheticTest, StreamsShareTheirCentres) {
  // Without noise, an example equals its cluster center.
  const auto a = Create("classes: 1 shape: 4 examples: 1 noise: 0");
  const auto b = Create("classes: 1 shape: 4 examples: 1 noise: 0 stream: 9");
  EXPECT_EQ(ReadAll(*a).features.bytes(), ReadAll(*b).features.bytes());
}

TEST(SyntheticTest, ClassificationHasTheGivenNoise) {
  const auto dataset = Create("classes: 4 shape: 10 shape: 10 shape: 1 examples: 400 noise: 0.5");
  EXPECT_EQ(dataset->spec().features_shape, Shape({10, 10, 1}));
  EXPECT_EQ(dataset->spec().classes, 4);
  const Batch noisy = ReadAll(*dataset);
  const Batch centres = ReadAll(*Create("classes: 4 shape: 10 shape: 10 shape: 1 examples: 400 noise: 0"));
  ASSERT_EQ(noisy.labels.bytes(), centres.labels.bytes());
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < noisy.features.num_elements(); ++i) {
    const double noise = noisy.features.flat<float>()[i] - centres.features.flat<float>()[i];
    sum += noise;
    squares += noise * noise;
  }
  EXPECT_NEAR(sum / 40000, 0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / 40000), 0.5, 0.01);
  std::vector<int> count(4);
  for (const int32_t label : noisy.labels.flat<int32_t>()) ++count.at(label);
  for (const int c : count) EXPECT_GT(c, 60);
}

TEST(SyntheticTest, RegressionIsLinear) {
  const auto dataset = Create("kind: REGRESSION shape: 1 examples: 50 noise: 0");
  EXPECT_EQ(dataset->spec().labels_dtype, v1::DT_FLOAT);
  EXPECT_EQ(dataset->spec().labels_shape, Shape({1}));
  const Batch batch = ReadAll(*dataset);
  const float slope = batch.labels.flat<float>()[0] / batch.features.flat<float>()[0];
  for (int i = 0; i < 50; ++i) {
    EXPECT_NEAR(batch.labels.flat<float>()[i], slope * batch.features.flat<float>()[i], 1e-5);
  }
}

TEST(SyntheticTest, ASequencesLabelIsItsCommonestClass) {
  const auto dataset = Create("kind: SEQUENCE shape: 9 classes: 4 vocabulary: 6 examples: 200");
  EXPECT_EQ(dataset->spec().features_dtype, v1::DT_INT32);
  const Batch batch = ReadAll(*dataset);
  for (int i = 0; i < 200; ++i) {
    std::vector<int> count(6);
    for (int place = 0; place < 9; ++place) ++count.at(batch.features.flat<int32_t>()[i * 9 + place]);
    const int32_t label = batch.labels.flat<int32_t>()[i];
    for (int c = 0; c < 4; ++c) EXPECT_LE(count[c], c < label ? count[label] - 1 : count[label]);
  }
}

TEST(SyntheticTest, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"classes: 2 shape: 2", "examples is 0"},
      {"classes: 2 shape: 2 examples: -1", "examples is -1"},
      {"classes: 2 examples: 1", "shape is empty"},
      {"classes: 2 shape: 0 examples: 1", "shape is 0"},
      {"classes: 2 shape: 9223372036854775807 shape: 2 examples: 1", "shape is 9223372036854775807"},
      {"shape: 2 examples: 1", "classes is 0"},
      {"classes: 2 shape: 2 examples: 1 noise: -1", "noise is -1"},
      {"classes: 2 shape: 2 examples: 1 noise: nan", "noise is nan"},
      {"kind: SEQUENCE classes: 2 shape: 2 examples: 1 vocabulary: 1", "vocabulary is 1"},
      {"kind: SEQUENCE classes: 2 shape: 2 shape: 2 examples: 1 vocabulary: 9", "shape is 2"},
      {"kind: 7 classes: 2 shape: 2 examples: 1", "kind is 7"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = CreateSyntheticDataset(Parse(text), 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace lockstep
