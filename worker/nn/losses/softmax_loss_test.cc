#include "lockstep/worker/nn/losses/softmax_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<LossOp>> Make(const std::string& text, const Shape& output, const ExampleSpec& spec) {
  config::v1::Loss config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return MakeSoftmaxLoss(config, "y", output, spec);
}

std::string Config(double smoothing) {
  return absl::StrCat("softmax_cross_entropy { label_smoothing: ", smoothing, " } weight: 2");
}

ExampleSpec Classes(int64_t classes) {
  ExampleSpec spec;
  spec.classes = classes;
  return spec;
}

ExampleSpec Targets(int64_t outputs) {
  ExampleSpec spec;
  spec.labels_dtype = v1::DT_FLOAT;
  spec.labels_shape = Shape{outputs};
  return spec;
}

// Returns twice the mean over the examples of sum_j t_j (log(sum_k exp(x_k)) - x_j), with smoothed t.
double Reference(double smoothing, int64_t outputs, const std::vector<double>& x, const std::vector<float>& targets) {
  double sum = 0;
  for (size_t row = 0; row < x.size(); row += outputs) {
    double exponentials = 0;
    for (int64_t j = 0; j < outputs; ++j) exponentials += std::exp(x[row + j]);
    for (int64_t j = 0; j < outputs; ++j) {
      const double t = targets[row + j] * (1 - smoothing) + smoothing / static_cast<double>(outputs);
      sum += t * (std::log(exponentials) - x[row + j]);
    }
  }
  return 2 * sum / static_cast<double>(x.size() / outputs);
}

void ExpectLoss(double smoothing, const ExampleSpec& spec, int64_t size, int64_t outputs, const Tensor& labels,
                const std::vector<float>& targets) {
  const auto loss = Make(Config(smoothing), Shape{outputs}, spec);
  ASSERT_EQ(loss.status(), absl::OkStatus());
  Batch batch;
  batch.size = size;
  batch.labels = labels;
  const std::vector<float> x = RandomFloats(size * outputs, 7);
  const auto reference = [&](const std::vector<double>& values) {
    return std::vector<double>{Reference(smoothing, outputs, values, targets)};
  };
  ComputeContext compute(1);
  ResultArray gradient(size * outputs);
  const double value = (*loss)->Compute(&compute, batch, x.data(), gradient.data());
  EXPECT_NEAR(value, reference(ToDoubles(x))[0], 1e-5) << outputs << " outputs, smoothing " << smoothing;
  EXPECT_EQ((*loss)->Compute(&compute, batch, x.data(), nullptr), value);
  EXPECT_EQ(FirstDifference(gradient.values(), NumericGradient(ToDoubles(x), {1}, reference), 1e-6), "")
      << outputs << " outputs, smoothing " << smoothing;
  EXPECT_TRUE(gradient.borders_intact());
}

TEST(SoftmaxLossTest, ComparesOutputsWithAClass) {
  for (const double smoothing : {0.0, 0.125, 1.0}) {
    for (int32_t outputs = 1; outputs <= 19; ++outputs) {
      // Each class once, in descending order.
      std::vector<int32_t> labels;
      std::vector<float> targets(outputs * outputs);
      for (int32_t i = 0; i < outputs; ++i) {
        labels.push_back(outputs - 1 - i);
        targets[i * outputs + labels.back()] = 1;
      }
      ExpectLoss(smoothing, Classes(outputs), outputs, outputs, Tensor::FromValues<int32_t>(Shape{outputs}, labels),
                 targets);
    }
  }
}

TEST(SoftmaxLossTest, TargetsNeedNotSumToOne) {
  for (const double smoothing : {0.0, 0.125, 1.0}) {
    for (int64_t outputs = 1; outputs <= 19; ++outputs) {
      std::vector<float> targets = RandomFloats(3 * outputs, 8);
      for (float& t : targets) t = std::abs(t);
      ExpectLoss(smoothing, Targets(outputs), 3, outputs, Tensor::FromValues<float>(Shape{3, outputs}, targets),
                 targets);
    }
  }
}

struct Result {
  double loss = 0;
  std::vector<float> gradient;
};

// Computes the loss of an example of class `label`.
Result ComputeOne(const std::vector<float>& x, int32_t label) {
  const int64_t outputs = static_cast<int64_t>(x.size());
  const auto loss = Make("softmax_cross_entropy {}", Shape{outputs}, Classes(outputs));
  EXPECT_EQ(loss.status(), absl::OkStatus());
  Batch batch;
  batch.size = 1;
  batch.labels = Tensor::FromValues<int32_t>(Shape{1}, {label});
  ComputeContext compute(1);
  Result result;
  result.gradient.resize(x.size());
  result.loss = (*loss)->Compute(&compute, batch, x.data(), result.gradient.data());
  return result;
}

TEST(SoftmaxLossTest, TheLargestOutputIsTakenOffFirst) {
  for (const float offset : {1000.0f, -1000.0f}) {
    const Result result = ComputeOne({offset, offset + 1, offset}, 0);
    EXPECT_NEAR(result.loss, std::log(2 + std::exp(1.0)), 1e-4);
    EXPECT_NEAR(result.gradient[1], std::exp(1.0) / (2 + std::exp(1.0)), 1e-5);
  }
}

TEST(SoftmaxLossTest, AnOutputMayBeMinusInfinity) {
  const Result result = ComputeOne({-std::numeric_limits<float>::infinity(), 0, 0}, 1);
  EXPECT_NEAR(result.loss, std::log(2.0), 1e-6);
  EXPECT_NEAR(result.gradient[0], 0, 1e-30);
  EXPECT_NEAR(result.gradient[1], -0.5, 1e-6);
}

TEST(SoftmaxLossTest, ANotANumberAnywhereShowsInTheLoss) {
  for (const size_t outputs : {3, 8, 13}) {
    for (size_t at = 0; at < outputs; ++at) {
      std::vector<float> x(outputs, 1.0f);
      x[at] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(ComputeOne(x, 0).loss)) << at << " of " << outputs;
    }
  }
}

TEST(SoftmaxLossTest, OutputsMustFitTheLabels) {
  const auto message = [](const Shape& output, const ExampleSpec& spec) {
    return std::string(Make("softmax_cross_entropy {}", output, spec).status().message());
  };
  EXPECT_EQ(message({3}, Classes(3)), "");
  EXPECT_EQ(message({4}, Classes(3)), "");
  EXPECT_EQ(
      message({2}, Classes(3)),
      "softmax cross-entropy of layer 'y': the layer has 2 outputs, but the data has 3 classes: the greatest label "
      "is 2, and classes begin at 0; the layer needs 3 outputs, or the classes other numbers");
  EXPECT_THAT(message({3, 1}, Classes(3)), HasSubstr("not shape [3,1]"));
  EXPECT_THAT(message({3}, Targets(2)), HasSubstr("output is [3], but the labels are [2]"));
}

TEST(SoftmaxLossTest, RefusesASmoothingOutOfRange) {
  for (const char* smoothing : {"-0.5", "1.5", "nan"}) {
    const std::string config = absl::StrCat("softmax_cross_entropy { label_smoothing: ", smoothing, " }");
    EXPECT_THAT(Make(config, Shape{3}, Classes(3)).status().message(),
                HasSubstr(absl::StrCat("label_smoothing is ", smoothing)));
  }
}

}  // namespace
}  // namespace lockstep
