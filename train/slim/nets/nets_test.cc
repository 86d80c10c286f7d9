// Compares the nets with tf_slim's forward pass, computed by tests/golden/nets_golden.py. The environment variable
// NETS_GOLDEN names the file with its results.
#include "lockstep/train/slim/nets/nets.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/graph/model_summary.h"
#include "zlib.h"

namespace lockstep::train::slim::nets {
namespace {

using ::testing::HasSubstr;

ExampleSpec ImagesOf(int64_t size, int64_t classes) {
  ExampleSpec examples;
  examples.features_shape = Shape{size, size, 3};
  examples.classes = classes;
  return examples;
}

// Returns number i of stream `stream` in [-1, 1), as nets_golden.py does.
float Number(uint32_t stream, uint32_t i) {
  uint32_t x = i * 2654435761u + stream;
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  return static_cast<float>(static_cast<int32_t>(x) >> 8) / 8388608.0f;
}

uint32_t StreamOf(const std::string& name) {
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(name.data()), static_cast<uInt>(name.size())));
}

// Returns a variable's value. Kernels are scaled so that they preserve the magnitude of their input.
std::vector<float> ValueOf(const v1::VariableSpec& variable) {
  int64_t elements = 1;
  for (const int64_t dim : variable.shape()) elements *= dim;
  const std::string& name = variable.name();
  const std::string kind = name.substr(name.rfind('/') + 1);
  float scale = 0.3f, offset = 0;
  if (kind == "kernel") {
    const bool depthwise = name.find("_depthwise/kernel") != std::string::npos;
    const int64_t outputs = depthwise ? variable.shape(2) * variable.shape(3) : variable.shape(3);
    scale = static_cast<float>(2.4 / std::sqrt(static_cast<double>(elements / outputs)));
  } else if (kind == "gamma" || kind == "moving_variance") {
    offset = 1;
  }
  std::vector<float> value(elements);
  for (int64_t i = 0; i < elements; ++i) value[i] = offset + scale * Number(StreamOf(name), static_cast<uint32_t>(i));
  return value;
}

TEST(NetsTest, TheirForwardPassIsThatOfTfSlim) {
  std::ifstream file(getenv("NETS_GOLDEN"));
  int nets = 0;
  for (std::string text; std::getline(file, text); ++nets) {
    std::istringstream line(text);
    std::string name;
    NetOptions options;
    line >> name >> options.width >> options.image_size >> options.classes;
    const ExampleSpec examples = ImagesOf(options.image_size, options.classes);
    const auto model = GraphModel::Create(NetByName(name, options).value(), examples);
    ASSERT_TRUE(model.ok()) << name << ": " << model.status();
    std::vector<std::vector<float>> memory;
    std::vector<const float*> values;
    for (const v1::VariableSpec& variable : (*model)->spec().variables()) memory.push_back(ValueOf(variable));
    for (const std::vector<float>& value : memory) values.push_back(value.data());
    Batch batch;
    batch.size = 2;
    batch.features = Tensor(v1::DT_FLOAT, Shape{2, options.image_size, options.image_size, 3});
    for (int64_t i = 0; i < batch.features.num_elements(); ++i) {
      batch.features.flat<float>()[i] = Number(StreamOf("images"), static_cast<uint32_t>(i));
    }
    batch.labels = Tensor(v1::DT_INT32, Shape{2});
    for (int32_t& label : batch.labels.flat<int32_t>()) label = 0;
    const absl::StatusOr<Tensor> logits = (*model)->Predict(values, batch);
    ASSERT_TRUE(logits.ok()) << logits.status();
    std::vector<float> expected;
    for (float logit; line >> logit;) expected.push_back(logit);
    ASSERT_GE(expected.size(), 14u) << name;
    // The golden file has all logits, or an evenly spaced subset.
    const size_t step = static_cast<size_t>(logits->num_elements()) / expected.size();
    ASSERT_EQ(step * expected.size(), static_cast<size_t>(logits->num_elements())) << name;
    float largest = 0, difference = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      difference = std::max(difference, std::abs(logits->flat<float>()[i * step] - expected[i]));
    }
    EXPECT_GT(largest, 0.05f) << name;
    EXPECT_LT(difference, 2e-5f * std::max(1.0f, largest)) << name;
  }
  EXPECT_EQ(nets, 4);
}

// The parameter counts, including moving averages, are those of tf_slim's full nets.
TEST(NetsTest, FullNetsHaveTheParametersOfTheOriginals) {
  const std::pair<const char*, int64_t> expected[] = {
      {"vgg_16", 138357544}, {"inception_v1", 6632184}, {"resnet_v1_50", 25610152}, {"mobilenet_v1", 4253864}};
  for (const auto& [name, parameters] : expected) {
    const auto summary = SummarizeModel(NetByName(name).value(), ImagesOf(224, 1000));
    ASSERT_TRUE(summary.ok()) << name << ": " << summary.status();
    EXPECT_EQ(summary->total.parameters, parameters) << name;
  }
}

TEST(NetsTest, InceptionsLogitsBeginAsTfSlims) {
  const config::v1::ModelConfig model = InceptionV1().value();
  int found = 0;
  for (const config::v1::Layer& layer : model.layer()) {
    if (layer.name() != "InceptionV1/Logits/Conv2d_0c_1x1") continue;
    ++found;
    const v1::Initializer& initializer = layer.conv2d().kernel_initializer();
    EXPECT_FLOAT_EQ(initializer.truncated_normal().stddev(), std::sqrt(1.3f * 2 / 1024));
  }
  EXPECT_EQ(found, 1);
}

TEST(NetsTest, SmallImagesAreTaken) {
  NetOptions options;
  options.image_size = 32;
  options.width = 0.1;
  options.classes = 3;
  for (const std::string& name : NetNames()) {
    EXPECT_TRUE(GraphModel::Create(NetByName(name, options).value(), ImagesOf(32, 3)).ok()) << name;
  }
}

TEST(NetsTest, RefusesOptionsOutOfRange) {
  EXPECT_THAT(std::string(Vgg16({0}).status().message()), HasSubstr("0 classes"));
  EXPECT_THAT(std::string(Vgg16({10, 31}).status().message()), HasSubstr("images of 31 pixels"));
  EXPECT_THAT(std::string(Vgg16({10, 224, 0}).status().message()), HasSubstr("width 0"));
  EXPECT_THAT(std::string(NetByName("vgg").status().message()), HasSubstr("there are vgg_16, inception_v1"));
}

}  // namespace
}  // namespace lockstep::train::slim::nets
