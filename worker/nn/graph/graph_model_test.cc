#include "lockstep/worker/nn/graph/graph_model.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/worker/nn/testing/gradient_check.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

config::v1::ModelConfig Parse(const std::string& text) {
  config::v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

ExampleSpec Vectors(int64_t size, int64_t classes) {
  ExampleSpec spec;
  spec.features_shape = Shape{size};
  spec.classes = classes;
  return spec;
}

std::unique_ptr<Model> Create(const std::string& text, const ExampleSpec& examples, int threads = 1) {
  ModelOptions options;
  options.compute_threads = threads;
  absl::StatusOr<std::unique_ptr<Model>> model = CreateModel(Parse(text), examples, options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Checks the gradients of a model in which `layer` is between two dense layers.
absl::Status CheckLayer(const std::string& layer) {
  const ExampleSpec examples = Vectors(6, 3);
  const auto model = Create("layer { name: 'first' dense { units: 11 } } layer { name: 'tested' " + layer +
                                " } layer { name: 'last' dense { units: 3 } } loss { softmax_cross_entropy {} }",
                            examples);
  TestVariables variables(model->spec(), 1);
  return CheckGradients(model.get(), &variables, RandomBatch(examples, 9, 2));
}

TEST(GraphModelTest, DenseHasTheGradientOfItsLoss) {
  for (const char* activation : {"NONE", "RELU", "LEAKY_RELU", "TANH", "SIGMOID", "GELU"}) {
    EXPECT_EQ(CheckLayer(std::string("dense { units: 13 activation: ") + activation + " }"), absl::OkStatus())
        << activation;
  }
  EXPECT_EQ(CheckLayer("dense { units: 5 no_bias: true activation: TANH }"), absl::OkStatus());
  EXPECT_EQ(CheckLayer("dense { units: 5 no_bias: true activation: GELU }"), absl::OkStatus());
}

TEST(GraphModelTest, ActivationHasTheGradientOfItsLoss) {
  for (const char* activation : {"NONE", "RELU", "LEAKY_RELU", "TANH", "SIGMOID", "GELU"}) {
    EXPECT_EQ(CheckLayer(std::string("activation { kind: ") + activation + " }"), absl::OkStatus()) << activation;
  }
  EXPECT_EQ(CheckLayer("activation { kind: LEAKY_RELU slope: 0.5 }"), absl::OkStatus());
}

TEST(GraphModelTest, BatchNormHasTheGradientOfItsLoss) {
  EXPECT_EQ(CheckLayer("batch_norm {}"), absl::OkStatus());
  EXPECT_EQ(CheckLayer("batch_norm { activation: RELU }"), absl::OkStatus());
  EXPECT_EQ(CheckLayer("batch_norm { activation: GELU }"), absl::OkStatus());
  EXPECT_EQ(CheckLayer("batch_norm { no_scale: true }"), absl::OkStatus());
  EXPECT_EQ(CheckLayer("batch_norm { no_center: true activation: TANH }"), absl::OkStatus());
}

TEST(GraphModelTest, DropoutHasTheGradientOfItsLoss) {
  EXPECT_EQ(CheckLayer("dropout { rate: 0.3 }"), absl::OkStatus());
  EXPECT_EQ(CheckLayer("dropout {}"), absl::OkStatus());
}

TEST(GraphModelTest, ReshapeHasTheGradientOfItsLoss) {
  EXPECT_EQ(CheckLayer("reshape { shape: -1 }"), absl::OkStatus());
}

TEST(GraphModelTest, FlattenHasTheGradientOfItsLoss) { EXPECT_EQ(CheckLayer("flatten {}"), absl::OkStatus()); }

ExampleSpec Images(std::initializer_list<int64_t> shape) {
  ExampleSpec spec;
  spec.features_shape = Shape(shape);
  spec.classes = 3;
  return spec;
}

// Checks the gradients of a model with a convolution before `layer` and a dense layer after it.
absl::Status CheckImageLayer(const std::string& layer, std::initializer_list<int64_t> shape = {7, 6, 2},
                             const GradientCheckOptions& options = {}) {
  const ExampleSpec examples = Images(shape);
  const auto model = Create("layer { name: 'first' conv2d { filters: 5 kernel: 1 } } layer { name: 'tested' " + layer +
                                " } layer { name: 'flat' flatten {} } layer { name: 'last' dense { units: 3 } } loss { "
                                "softmax_cross_entropy {} }",
                            examples);
  TestVariables variables(model->spec(), 1, 0.3f);
  return CheckGradients(model.get(), &variables, RandomBatch(examples, 4, 2), options);
}

TEST(GraphModelTest, Conv2dHasTheGradientOfItsLoss) {
  for (const char* kernel : {"kernel: 1", "kernel: 2", "kernel: 3", "kernel: 3 kernel: 5", "kernel: 5 kernel: 1"}) {
    for (const char* strides : {"", "strides: 2", "strides: 3 strides: 1", "strides: 1 strides: 4"}) {
      for (const char* padding : {"SAME", "VALID"}) {
        const std::string layer =
            absl::StrCat("conv2d { filters: 18 ", kernel, " ", strides, " padding: ", padding, " activation: TANH }");
        EXPECT_EQ(CheckImageLayer(layer), absl::OkStatus()) << layer;
      }
    }
  }
  // Tests rows that are longer than a tile.
  EXPECT_EQ(CheckImageLayer("conv2d { filters: 2 kernel: 2 }", {2, 200, 1}), absl::OkStatus());
  EXPECT_EQ(CheckImageLayer("conv2d { filters: 2 kernel: 3 strides: 2 }", {3, 410, 1}), absl::OkStatus());
  EXPECT_EQ(CheckImageLayer("conv2d { filters: 3 kernel: 3 activation: GELU no_bias: true }"), absl::OkStatus());
  EXPECT_EQ(CheckImageLayer("conv2d { filters: 3 kernel: 3 }", {4, 9}), absl::OkStatus());
}

TEST(GraphModelTest, PoolsHaveTheGradientOfTheirLoss) {
  // The step is so small that the largest element changes in only a few windows.
  GradientCheckOptions options;
  options.step = 2e-4f;
  options.noise = 3e-3f;
  for (const char* kind : {"max_pool", "average_pool"}) {
    for (const char* window : {"window: 2", "window: 3", "window: 1 window: 2", "window: 7 window: 6"}) {
      for (const char* strides : {"", "strides: 2", "strides: 1", "strides: 3 strides: 4"}) {
        for (const char* padding : {"SAME", "VALID"}) {
          const std::string layer = absl::StrCat(kind, " { ", window, " ", strides, " padding: ", padding, " }");
          EXPECT_EQ(CheckImageLayer(layer, {7, 6, 2}, options), absl::OkStatus()) << layer;
        }
      }
    }
  }
}

TEST(GraphModelTest, ImageLayersMatchNumericGradients) {
  EXPECT_EQ(CheckImageLayer("batch_norm { activation: RELU }"), absl::OkStatus());
  EXPECT_EQ(CheckImageLayer("layer_norm {}"), absl::OkStatus());
  EXPECT_EQ(CheckImageLayer("global_average_pool {}"), absl::OkStatus());
  EXPECT_EQ(CheckImageLayer("dropout { rate: 0.4 }"), absl::OkStatus());
}

TEST(GraphModelTest, LayerNormHasTheGradientOfItsLoss) {
  EXPECT_EQ(CheckLayer("layer_norm {}"), absl::OkStatus());
  EXPECT_EQ(CheckLayer("layer_norm { epsilon: 0.1 }"), absl::OkStatus());
}

TEST(GraphModelTest, EmbeddingHasTheGradientOfItsLoss) {
  ExampleSpec examples = Vectors(6, 3);
  examples.features_dtype = v1::DT_INT32;
  const auto model = Create(
      "layer { name: 'words' embedding { vocabulary: 5 dimension: 9 } } layer { name: 'mean' global_average_pool {} } "
      "layer { name: 'last' dense { units: 3 } } loss { softmax_cross_entropy {} }",
      examples);
  TestVariables variables(model->spec(), 1);
  EXPECT_EQ(CheckGradients(model.get(), &variables, RandomBatch(examples, 9, 2)), absl::OkStatus());
}

TEST(GraphModelTest, ResidualsMatchNumericGradients) {
  const ExampleSpec examples = Images({5, 5, 2});
  const auto model = Create(
      "layer { name: 'a' conv2d { filters: 4 kernel: 3 activation: TANH } }"
      "layer { name: 'b' conv2d { filters: 4 kernel: 3 } }"
      "layer { name: 'sum' input: 'a' input: 'b' input: 'a' add {} }"
      "layer { name: 'flat' input: 'sum' flatten {} }"
      "layer { name: 'twice' input: 'flat' input: 'flat' add {} }"
      "layer { name: 'pooled' input: 'sum' global_average_pool {} }"
      "layer { name: 'side' dense { units: 3 } }"
      "layer { name: 'main' input: 'twice' dense { units: 3 } }"
      "loss { softmax_cross_entropy {} } loss { input: 'side' weight: 0.3 softmax_cross_entropy {} }",
      examples);
  TestVariables variables(model->spec(), 1, 0.3f);
  EXPECT_EQ(CheckGradients(model.get(), &variables, RandomBatch(examples, 4, 2)), absl::OkStatus());
}

TEST(GraphModelTest, RegularizersMatchNumericGradients) {
  const ExampleSpec examples = Vectors(6, 3);
  const auto model = Create(
      "layer { name: 'a' dense { units: 11 } } layer { name: 'b' dense { units: 3 } } loss { softmax_cross_entropy {} "
      "} regularizer { variables: 'kernel$' l2: 0.3 } regularizer { variables: '^a/' l1: 0.2 }",
      examples);
  TestVariables variables(model->spec(), 1);
  EXPECT_EQ(CheckGradients(model.get(), &variables, RandomBatch(examples, 9, 2)), absl::OkStatus());
}

TEST(GraphModelTest, AnnouncesTheLastLayersGradientsFirst) {
  const ExampleSpec examples = Vectors(6, 3);
  const auto model = Create(
      "layer { name: 'a' dense { units: 4 } } layer { name: 'b' batch_norm {} } layer { name: 'c' dense { units: 3 } } "
      "loss { softmax_cross_entropy {} }",
      examples);
  TestVariables variables(model->spec(), 1);
  RecordingSink sink(model->spec());
  ASSERT_EQ(model->ComputeGradients(variables.values(), RandomBatch(examples, 5, 1), {}, &sink), absl::OkStatus());
  EXPECT_EQ(sink.Violations(), "");
  std::vector<std::string> names;
  for (const int variable : sink.order()) names.push_back(model->spec().variables(variable).name());
  EXPECT_THAT(names, ElementsAre("c/bias", "c/kernel", "b/gamma", "b/beta", "a/bias", "a/kernel"));
}

TEST(GraphModelTest, StopsWhenTheLossIsNotWanted) {
  const ExampleSpec examples = Vectors(6, 3);
  const auto model = Create("layer { name: 'a' dense { units: 3 } } loss { softmax_cross_entropy {} }", examples);
  TestVariables variables(model->spec(), 1);
  RecordingSink sink(model->spec());
  sink.Refuse();
  EXPECT_TRUE(absl::IsCancelled(model->ComputeGradients(variables.values(), RandomBatch(examples, 5, 1), {}, &sink)));
  EXPECT_TRUE(sink.order().empty());
}

// Applies the updates that one slot reports in the same way as the server.
void ApplyMovingAverages(const v1::ModelSpec& spec, const RecordingSink& sink, TestVariables* variables) {
  for (int i = 0; i < spec.update_ops_size(); ++i) {
    const v1::UpdateOpSpec& op = spec.update_ops(i);
    const absl::Span<float> value = variables->value(op.variable());
    for (size_t j = 0; j < value.size(); ++j) value[j] -= (value[j] - sink.updates()[i][j]) * (1 - op.decay());
  }
}

// CTO-01
TEST(GraphModelTest, MovingAveragesReachAConstantBatch) {
  const ExampleSpec examples = Vectors(3, 2);
  const auto model = Create(
      "layer { name: 'norm' batch_norm { decay: 0.1 } } layer { name: 'out' dense { units: 2 } } "
      "loss { softmax_cross_entropy {} }",
      examples);
  TestVariables variables(model->spec(), 1);
  const Batch batch = RandomBatch(examples, 16, 7);
  for (int step = 0; step < 10; ++step) {
    RecordingSink sink(model->spec());
    ASSERT_EQ(model->ComputeGradients(variables.values(), batch, {0, step, 0}, &sink), absl::OkStatus());
    ASSERT_EQ(sink.Violations(), "");
    ApplyMovingAverages(model->spec(), sink, &variables);
  }
  for (int c = 0; c < 3; ++c) {
    double mean = 0;
    double variance = 0;
    for (int i = 0; i < 16; ++i) mean += batch.features.flat<float>()[3 * i + c] / 16.0;
    for (int i = 0; i < 16; ++i) variance += std::pow(batch.features.flat<float>()[3 * i + c] - mean, 2) / 16.0;
    EXPECT_NEAR(variables.value("norm/moving_mean")[c], mean, 1e-6 * std::abs(mean) + 1e-7);
    EXPECT_NEAR(variables.value("norm/moving_variance")[c], variance, 1e-6 * variance);
  }
}

TEST(GraphModelTest, DropoutKeepsTheGeneratorsElements) {
  const ExampleSpec examples = Vectors(37, 37);
  const auto model = Create(
      "layer { name: 'scale' batch_norm {} } layer { name: 'drop' dropout { rate: 0.25 } } "
      "loss { mean_squared_error {} }",
      examples);
  TestVariables variables(model->spec(), 1);
  for (float& gamma : variables.value("scale/gamma")) gamma = 0;
  for (float& beta : variables.value("scale/beta")) beta = 1;
  // The dropout layer's input is 1 everywhere. With targets t the loss is the mean of (4/3 - t)^2 over kept elements
  // and t^2 over dropped ones.
  for (const int64_t size : {1, 3, 200}) {
    const Batch batch = RandomBatch(examples, size, 1);
    const SlotKey key{77, 5, 3};
    RecordingSink sink(model->spec());
    ASSERT_EQ(model->ComputeGradients(variables.values(), batch, key, &sink), absl::OkStatus());
    const Philox philox = Philox::ForSlot(key.seed, "drop", key.step, key.slot);
    double loss = 0;
    std::vector<double> beta_gradient(37);
    for (int64_t i = 0; i < size * 37; ++i) {
      const bool kept = Philox::ToUniform(philox.At(i / 4)[i % 4]) >= 0.25f;
      const double target = i % 37 == batch.labels.flat<int32_t>()[i / 37] ? 1 : 0;
      const double output = kept ? 4.0 / 3 : 0;
      loss += (output - target) * (output - target) / (37.0 * size);
      beta_gradient[i % 37] += kept ? 4.0 / 3 * 2 * (output - target) / (37.0 * size) : 0;
    }
    EXPECT_NEAR(sink.loss(), loss, 1e-5);
    for (int c = 0; c < 37; ++c) EXPECT_NEAR(sink.gradient(0)[c], beta_gradient[c], 1e-5) << c;
  }
}

TEST(GraphModelTest, DropoutIsTheIdentityInEvaluation) {
  const ExampleSpec examples = Vectors(5, 5);
  const auto model = Create("layer { name: 'drop' dropout { rate: 0.9 } } loss { softmax_cross_entropy {} }", examples);
  const Batch batch = RandomBatch(examples, 7, 1);
  const absl::StatusOr<Tensor> output = model->Predict({}, batch);
  ASSERT_EQ(output.status(), absl::OkStatus());
  EXPECT_EQ(output->bytes(), batch.features.bytes());
}

// The model has a layer that only the prediction uses, and another that only the loss uses.
TEST(GraphModelTest, OnePassPredictsAndEvaluatesAlike) {
  const ExampleSpec examples = Vectors(6, 3);
  const auto model = Create(
      "layer { name: 'a' dense { units: 8 activation: RELU } } layer { name: 'b' batch_norm {} } "
      "layer { name: 'side' dense { units: 3 } } layer { name: 'scores' input: 'b' dense { units: 3 } } "
      "layer { name: 'p' activation { kind: SIGMOID } } "
      "loss { input: 'scores' softmax_cross_entropy {} } loss { input: 'side' hinge {} }",
      examples);
  TestVariables variables(model->spec(), 1);
  const Batch batch = RandomBatch(examples, 9, 2);
  const absl::StatusOr<Tensor> predictions = model->Predict(variables.values(), batch);
  ASSERT_EQ(predictions.status(), absl::OkStatus());
  const absl::StatusOr<float> loss = model->EvaluateLoss(variables.values(), batch);
  ASSERT_EQ(loss.status(), absl::OkStatus());
  const auto both = model->PredictAndEvaluateLoss(variables.values(), batch);
  ASSERT_EQ(both.status(), absl::OkStatus());
  EXPECT_EQ(both->predictions.shape(), Shape({9, 3}));
  EXPECT_EQ(both->predictions.bytes(), predictions->bytes());
  EXPECT_EQ(both->loss, *loss);
}

TEST(GraphModelTest, TakesBatchesOfAnySize) {
  const ExampleSpec examples = Vectors(6, 3);
  const std::string text =
      "layer { name: 'a' dense { units: 20 activation: RELU } } layer { name: 'b' batch_norm {} } "
      "layer { name: 'd' dropout { rate: 0.5 } } layer { name: 'c' dense { units: 3 } } loss { softmax_cross_entropy "
      "{} "
      "}";
  const auto model = Create(text, examples);
  TestVariables variables(model->spec(), 1);
  for (const int64_t size : {3, 300, 1, 7, 300}) {
    const Batch batch = RandomBatch(examples, size, 5);
    RecordingSink used(model->spec());
    ASSERT_EQ(model->ComputeGradients(variables.values(), batch, {1, 2, 3}, &used), absl::OkStatus());
    const auto fresh_model = Create(text, examples);
    RecordingSink fresh(fresh_model->spec());
    ASSERT_EQ(fresh_model->ComputeGradients(variables.values(), batch, {1, 2, 3}, &fresh), absl::OkStatus());
    EXPECT_EQ(used.Bytes(), fresh.Bytes()) << size;
  }
}

TEST(GraphModelTest, RefusesBatchesThatDoNotFit) {
  const ExampleSpec examples = Vectors(6, 3);
  const auto model = Create("layer { name: 'a' dense { units: 3 } } loss { softmax_cross_entropy {} }", examples);
  TestVariables variables(model->spec(), 1);
  const auto error = [&](const Batch& batch) {
    RecordingSink sink(model->spec());
    const absl::Status status = model->ComputeGradients(variables.values(), batch, {}, &sink);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(model->EvaluateLoss(variables.values(), batch).status(), status);
    EXPECT_EQ(model->PredictAndEvaluateLoss(variables.values(), batch).status(), status);
    return std::string(status.message());
  };
  EXPECT_THAT(error(Batch()), HasSubstr("0 examples"));
  EXPECT_THAT(error(RandomBatch(Vectors(5, 3), 4, 1)), HasSubstr("[4,5]"));
  Batch batch = RandomBatch(examples, 4, 1);
  batch.labels.flat<int32_t>()[2] = 3;
  EXPECT_THAT(error(batch), HasSubstr("label 3 of example 2"));
  batch.labels.flat<int32_t>()[2] = -1;
  EXPECT_THAT(error(batch), HasSubstr("label -1 of example 2"));
  batch = RandomBatch(examples, 4, 1);
  batch.weights = Tensor(v1::DT_FLOAT, Shape{3});
  EXPECT_THAT(error(batch), HasSubstr("weights are float32 [3]"));
}

}  // namespace
}  // namespace lockstep
