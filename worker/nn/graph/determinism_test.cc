// Tests that results depend only on the arguments, to the last bit.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/testing/gradient_check.h"
#include "lockstep/worker/nn/testing/layer_kinds.h"

namespace lockstep {
namespace {

struct Sample {
  std::string name;
  std::string config;
  Shape features;
  v1::DataType dtype = v1::DT_FLOAT;
  std::vector<int64_t> batches;
};

constexpr char kLoss[] =
    " loss { softmax_cross_entropy { label_smoothing: 0.1 } } regularizer { variables: 'k' l2: 0.01 }";

std::vector<Sample> Samples() {
  return {
      {"mlp",
       "layer { name: 'a' dense { units: 520 activation: RELU } } layer { name: 'n' batch_norm {} }"
       "layer { name: 'd' dropout { rate: 0.4 } } layer { name: 'b' dense { units: 300 activation: GELU } }"
       "layer { name: 'l' layer_norm {} } layer { name: 'c' dense { units: 10 } }",
       Shape{345},
       v1::DT_FLOAT,
       {1, 13, 300}},
      {"cnn",
       "layer { name: 'a' conv2d { filters: 20 kernel: 3 } } layer { name: 'n' batch_norm { activation: RELU } }"
       "layer { name: 'p' max_pool { window: 3 strides: 2 } }"
       "layer { name: 'b' conv2d { filters: 33 kernel: 3 strides: 2 activation: TANH } }"
       "layer { name: 'q' average_pool { window: 2 strides: 1 } } layer { name: 'f' flatten {} }"
       "layer { name: 'c' dense { units: 10 } }",
       Shape{28, 28, 3},
       v1::DT_FLOAT,
       {1, 9}},
      {"embedding",
       "layer { name: 'e' embedding { vocabulary: 20000 dimension: 17 } } layer { name: 'g' global_average_pool {} }"
       "layer { name: 's' input: 'g' input: 'g' add {} } layer { name: 'c' dense { units: 10 } }",
       Shape{20},
       v1::DT_INT32,
       {3, 50}},
      {"branches",
       "layer { name: 'a' depthwise_conv2d { kernel: 3 multiplier: 5 } } layer { name: 'n' lrn {} }"
       "layer { name: 'b' separable_conv2d { filters: 24 kernel: 3 strides: 2 activation: RELU6 } }"
       "layer { name: 't' activation { kind: LEAKY_RELU } } layer { name: 'j' input: 'b' input: 't' concat {} }"
       "layer { name: 'r' reshape { shape: -1 shape: 12 } } layer { name: 'g' global_average_pool {} }"
       "layer { name: 'c' dense { units: 10 } }",
       Shape{20, 20, 3},
       v1::DT_FLOAT,
       {1, 9}},
  };
}

ExampleSpec SpecOf(const Sample& sample) {
  ExampleSpec spec;
  spec.features_shape = sample.features;
  spec.features_dtype = sample.dtype;
  spec.classes = 10;
  return spec;
}

config::v1::ModelConfig ConfigOf(const Sample& sample) {
  config::v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(sample.config + kLoss, &config)) << sample.name;
  return config;
}

std::unique_ptr<Model> MakeModel(const Sample& sample, int threads) {
  ModelOptions options;
  options.compute_threads = threads;
  absl::StatusOr<std::unique_ptr<Model>> model = CreateModel(ConfigOf(sample), SpecOf(sample), options);
  EXPECT_EQ(model.status(), absl::OkStatus());
  return *std::move(model);
}

// Returns all results of the model for a batch.
std::string Results(Model* model, const Sample& sample, int64_t batch_size) {
  TestVariables variables(model->spec(), 1, 0.1f);
  const Batch batch = RandomBatch(SpecOf(sample), batch_size, 2);
  RecordingSink sink(model->spec());
  EXPECT_EQ(model->ComputeGradients(variables.values(), batch, {4, 5, 6}, &sink), absl::OkStatus());
  EXPECT_EQ(sink.Violations(), "");
  const absl::StatusOr<Tensor> prediction = model->Predict(variables.values(), batch);
  EXPECT_EQ(prediction.status(), absl::OkStatus());
  return absl::StrCat(sink.Bytes(), prediction->bytes());
}

// If this test fails because of a new kind of layer, add the layer to a sample.
TEST(DeterminismTest, SamplesHaveEachKindOfLayer) {
  std::set<std::string> kinds;
  for (const Sample& sample : Samples()) AddLayerKinds(ConfigOf(sample), &kinds);
  EXPECT_EQ(kinds, AllLayerKinds());
}

TEST(DeterminismTest, ThreadsDoNotChangeTheBits) {
  for (const Sample& sample : Samples()) {
    const auto one = MakeModel(sample, 1);
    const auto two = MakeModel(sample, 2);
    const auto five = MakeModel(sample, 5);
    for (const int64_t size : sample.batches) {
      const std::string expected = Results(one.get(), sample, size);
      for (int repeat = 0; repeat < 2; ++repeat) {
        EXPECT_TRUE(Results(two.get(), sample, size) == expected) << sample.name << " " << size;
        EXPECT_TRUE(Results(five.get(), sample, size) == expected) << sample.name << " " << size;
      }
    }
  }
}

// Also covers how the layers use the kernels: which part of a product each thread computes, and what is packed, how and
// when.
TEST(DeterminismTest, InstructionSetsDoNotChangeTheBits) {
  for (const Sample& sample : Samples()) {
    for (const int64_t size : sample.batches) {
      SCOPED_TRACE(absl::StrCat(sample.name, " ", size));
      ExpectSameBitsOnEachTarget([&] { return Results(MakeModel(sample, 2).get(), sample, size); });
    }
  }
}

TEST(DeterminismTest, OtherSizesBeforeDoNotChangeTheBits) {
  for (const Sample& sample : Samples()) {
    std::vector<std::string> expected;
    for (const int64_t size : sample.batches) expected.push_back(Results(MakeModel(sample, 1).get(), sample, size));
    const auto model = MakeModel(sample, 1);
    for (size_t i = sample.batches.size(); i-- > 0;) {
      EXPECT_TRUE(Results(model.get(), sample, sample.batches[i]) == expected[i]) << sample.name << " " << i;
    }
    for (size_t i = 0; i < sample.batches.size(); ++i) {
      EXPECT_TRUE(Results(model.get(), sample, sample.batches[i]) == expected[i]) << sample.name << " " << i;
    }
  }
}

TEST(DeterminismTest, AddressesDoNotChangeTheBits) {
  for (const Sample& sample : Samples()) {
    const std::string expected = Results(MakeModel(sample, 1).get(), sample, sample.batches.back());
    // Leaves gaps of odd sizes in the heap, which shift all later allocations.
    std::vector<std::unique_ptr<char[]>> moved;
    for (int i = 1; i <= 4; ++i) {
      moved.push_back(std::make_unique<char[]>(i * 4099));
      moved.push_back(std::make_unique<char[]>(i * 131 + 40));
      moved[moved.size() - 2].reset();
      EXPECT_TRUE(Results(MakeModel(sample, 1).get(), sample, sample.batches.back()) == expected) << sample.name;
    }
  }
}

}  // namespace
}  // namespace lockstep
