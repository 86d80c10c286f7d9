#include "lockstep/worker/nn/losses/elementwise_loss.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A kind of loss, and its l(x, t) from the table in loss_op.h.
struct Kind {
  std::string config;
  std::function<double(double x, double t)> loss;
};

double HuberLoss(double e, double delta) { return e <= delta ? e * e / 2 : delta * e - delta * delta / 2; }

const Kind kKinds[] = {
    {"sigmoid_cross_entropy {}",
     [](double x, double t) { return std::max(x, 0.0) - x * t + std::log(1 + std::exp(-std::abs(x))); }},
    {"mean_squared_error {}", [](double x, double t) { return (x - t) * (x - t); }},
    {"absolute_difference {}", [](double x, double t) { return std::abs(x - t); }},
    {"huber {}", [](double x, double t) { return HuberLoss(std::abs(x - t), 1); }},
    {"huber { delta: 0.5 }", [](double x, double t) { return HuberLoss(std::abs(x - t), 0.5); }},
    {"hinge {}", [](double x, double t) { return std::max(0.0, 1 - (2 * t - 1) * x); }},
};

absl::StatusOr<std::unique_ptr<LossOp>> Make(const std::string& text, const Shape& output, const ExampleSpec& spec) {
  config::v1::Loss config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return MakeElementwiseLoss(config, "y", output, spec);
}

ExampleSpec Classes(int64_t classes) {
  ExampleSpec spec;
  spec.classes = classes;
  return spec;
}

ExampleSpec Targets(const Shape& shape) {
  ExampleSpec spec;
  spec.labels_dtype = v1::DT_FLOAT;
  spec.labels_shape = shape;
  return spec;
}

// Compares the loss and its gradient with the formula for `targets` [batch, outputs]. The batch itself contains
// `labels`, which are equivalent to the targets.
void ExpectLoss(const Kind& kind, const ExampleSpec& spec, int64_t size, int64_t outputs, const Tensor& labels,
                const std::vector<float>& targets) {
  const auto loss = Make(kind.config + " weight: 2", Shape{outputs}, spec);
  ASSERT_EQ(loss.status(), absl::OkStatus());
  Batch batch;
  batch.size = size;
  batch.labels = labels;
  const std::vector<float> x = RandomFloats(size * outputs, 7);
  const auto reference = [&](const std::vector<double>& values) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += kind.loss(values[i], targets[i]);
    return std::vector<double>{2 * sum / static_cast<double>(values.size())};
  };
  ComputeContext compute(1);
  ResultArray gradient(size * outputs);
  const double value = (*loss)->Compute(&compute, batch, x.data(), gradient.data());
  EXPECT_NEAR(value, reference(ToDoubles(x))[0], 1e-6) << kind.config << " " << outputs;
  EXPECT_EQ((*loss)->Compute(&compute, batch, x.data(), nullptr), value);
  EXPECT_EQ(FirstDifference(gradient.values(), NumericGradient(ToDoubles(x), {1}, reference), 1e-6), "")
      << kind.config << " " << outputs;
  EXPECT_TRUE(gradient.borders_intact());
}

TEST(ElementwiseLossTest, ComparesTargetsOfAnyLength) {
  for (const Kind& kind : kKinds) {
    for (const int64_t outputs : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 21}) {
      std::vector<float> targets = RandomFloats(3 * outputs, 8);
      for (float& t : targets) t = std::abs(t);
      ExpectLoss(kind, Targets({outputs}), 3, outputs, Tensor::FromValues<float>(Shape{3, outputs}, targets), targets);
    }
  }
}

TEST(ElementwiseLossTest, AClassStandsForAOneAmongZeros) {
  for (const Kind& kind : kKinds) {
    for (const int64_t outputs : {2, 3, 7, 8, 9, 21}) {
      std::vector<int32_t> labels;
      std::vector<float> targets(outputs * outputs);
      for (int32_t i = 0; i < outputs; ++i) {
        labels.push_back(static_cast<int32_t>(outputs) - 1 - i);
        targets[i * outputs + labels.back()] = 1;
      }
      ExpectLoss(kind, Classes(outputs), outputs, outputs, Tensor::FromValues<int32_t>(Shape{outputs}, labels),
                 targets);
    }
  }
}

TEST(ElementwiseLossTest, WithOneOutputTheClassIsTheTarget) {
  for (const Kind& kind : kKinds) {
    ExpectLoss(kind, Classes(2), 3, 1, Tensor::FromValues<int32_t>(Shape{3}, {0, 1, 0}), {0, 1, 0});
  }
}

// Returns the gradient of the loss of one example with these outputs and targets.
std::vector<float> Slopes(const std::string& config, const std::vector<float>& x, const std::vector<float>& t) {
  const int64_t outputs = static_cast<int64_t>(x.size());
  const auto loss = Make(config, Shape{outputs}, Targets({outputs}));
  EXPECT_EQ(loss.status(), absl::OkStatus());
  Batch batch;
  batch.size = 1;
  batch.labels = Tensor::FromValues<float>(Shape{1, outputs}, t);
  ComputeContext compute(1);
  std::vector<float> gradient(outputs);
  (*loss)->Compute(&compute, batch, x.data(), gradient.data());
  for (float& g : gradient) g *= static_cast<float>(outputs);
  return gradient;
}

TEST(ElementwiseLossTest, LogLossIsOfProbabilities) {
  const std::vector<float> p = {0.1f, 0.5f, 0.9f, 0, 1};
  const std::vector<float> t = {1, 0.25f, 1, 1, 0};
  for (const double epsilon : {1e-7, 0.01}) {
    const std::string config = absl::StrCat("log_loss { epsilon: ", epsilon, " }");
    const auto loss = Make(config, Shape{5}, Targets({5}));
    ASSERT_EQ(loss.status(), absl::OkStatus());
    Batch batch;
    batch.size = 1;
    batch.labels = Tensor::FromValues<float>(Shape{1, 5}, t);
    ComputeContext compute(1);
    double expected = 0;
    for (int i = 0; i < 5; ++i) {
      expected -= t[i] * std::log(p[i] + epsilon) + (1 - t[i]) * std::log(1 - p[i] + epsilon);
    }
    EXPECT_NEAR((*loss)->Compute(&compute, batch, p.data(), nullptr), expected / 5, 1e-5) << epsilon;
    const std::vector<float> slopes = Slopes(config, p, t);
    for (int i = 0; i < 5; ++i) {
      const double slope = (1 - t[i]) / (1 - p[i] + epsilon) - t[i] / (p[i] + epsilon);
      EXPECT_NEAR(slopes[i] / slope, 1, 1e-5) << epsilon << " " << i;
    }
  }
  EXPECT_THAT(Make("log_loss { epsilon: -1 }", Shape{3}, Classes(3)).status().message(), HasSubstr("epsilon is -1"));
}

TEST(ElementwiseLossTest, KinksHaveASlope) {
  EXPECT_THAT(Slopes("absolute_difference {}", {1, 2, 0}, {1, 1, 1}), ElementsAre(0, 1, -1));
  EXPECT_THAT(Slopes("huber {}", {2, 0, 3, -1}, {1, 1, 1, 1}), ElementsAre(1, -1, 1, -1));
  EXPECT_THAT(Slopes("hinge {}", {1, -1, 0.5f, -0.5f}, {1, 0, 1, 0}), ElementsAre(0, 0, -1, 1));
}

TEST(ElementwiseLossTest, LargeOutputsDoNotOverflow) {
  EXPECT_EQ(
      FirstDifference(Slopes("sigmoid_cross_entropy {}", {500, -500, 500, -500}, {1, 0, 0, 1}), {0, 0, 1, -1}, 1e-30),
      "");
}

TEST(ElementwiseLossTest, ANaNShowsInTheLossAndItsGradient) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* config : {"sigmoid_cross_entropy {}", "mean_squared_error {}", "huber {}"}) {
    const std::vector<float> slopes = Slopes(config, {1, nan, 2}, {1, 1, 1});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(std::isnan(slopes[i]), i == 1) << config;
  }
  Batch batch;
  batch.size = 1;
  batch.labels = Tensor::FromValues<float>(Shape{1, 2}, {0, 1});
  ComputeContext compute(1);
  const std::vector<float> x = {1, nan};
  for (const Kind& kind : kKinds) {
    EXPECT_TRUE(std::isnan((*Make(kind.config, Shape{2}, Targets({2})))->Compute(&compute, batch, x.data(), nullptr)))
        << kind.config;
  }
}

TEST(ElementwiseLossTest, OutputsMustFitTheLabels) {
  const auto message = [](const Shape& output, const ExampleSpec& spec) {
    return std::string(Make("hinge {}", output, spec).status().message());
  };
  EXPECT_EQ(message({3}, Classes(3)), "");
  EXPECT_EQ(message({4}, Classes(3)), "");
  EXPECT_EQ(message({1}, Classes(2)), "");
  EXPECT_EQ(message({1}, Targets({})), "");
  EXPECT_EQ(message({2, 3}, Targets({2, 3})), "");
  EXPECT_EQ(
      message({2}, Classes(3)),
      "loss of layer 'y': the layer has 2 outputs, but the data has 3 classes: the greatest label is 2, and classes "
      "begin at 0; the layer needs 3 outputs, or the classes other numbers");
  EXPECT_THAT(message({1}, Classes(3)), HasSubstr("1 outputs, but the data has 3 classes"));
  EXPECT_EQ(message({3}, Targets({2})), "loss of layer 'y': the layer's output is [3], but the labels are [2]");
  EXPECT_THAT(message({6}, Targets({2, 3})), HasSubstr("[6], but the labels are [2,3]"));
}

TEST(ElementwiseLossTest, RefusesADeltaThatIsNotPositive) {
  for (const char* delta : {"0", "-1", "inf", "nan"}) {
    EXPECT_THAT(Make(absl::StrCat("huber { delta: ", delta, " }"), Shape{3}, Classes(3)).status().message(),
                HasSubstr(absl::StrCat("delta is ", delta)));
  }
}

}  // namespace
}  // namespace lockstep
