#include "lockstep/worker/nn/losses/loss.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<LossOp>> Create(const std::string& text) {
  config::v1::Loss config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  ExampleSpec spec;
  spec.classes = 2;
  return CreateLoss(config, "y", Shape{2}, spec);
}

// Returns the loss of an example with outputs 0 and 3, class 1.
double Value(const std::string& text) {
  const auto loss = Create(text);
  EXPECT_EQ(loss.status(), absl::OkStatus());
  Batch batch;
  batch.size = 1;
  batch.labels = Tensor::FromValues<int32_t>(Shape{1}, {1});
  ComputeContext compute(1);
  const std::vector<float> outputs = {0, 3};
  return (*loss)->Compute(&compute, batch, outputs.data(), nullptr);
}

TEST(LossTest, EachKindIsItself) {
  EXPECT_NEAR(Value("softmax_cross_entropy {}"), std::log(1 + std::exp(-3.0)), 1e-6);
  EXPECT_NEAR(Value("sigmoid_cross_entropy {}"), (std::log(2.0) + std::log(1 + std::exp(-3.0))) / 2, 1e-6);
  EXPECT_NEAR(Value("mean_squared_error {}"), 2, 1e-6);
  EXPECT_NEAR(Value("absolute_difference {}"), 1, 1e-6);
  EXPECT_NEAR(Value("huber {}"), 0.75, 1e-6);
  EXPECT_NEAR(Value("hinge {}"), 0.5, 1e-6);
}

TEST(LossTest, AWeightMultipliesAndMayBeZero) {
  EXPECT_NEAR(Value("mean_squared_error {} weight: -1.5"), -3, 1e-6);
  EXPECT_EQ(Value("mean_squared_error {} weight: 0"), 0);
  EXPECT_NEAR(Value("softmax_cross_entropy {} weight: 3"), 3 * std::log(1 + std::exp(-3.0)), 1e-6);
}

TEST(LossTest, RefusesAMissingKindAndANaNWeight) {
  EXPECT_THAT(Create("").status().message(), HasSubstr("the loss of layer 'y' has no kind"));
  EXPECT_THAT(Create("hinge {} weight: inf").status().message(), HasSubstr("has weight inf"));
  EXPECT_THAT(Create("hinge {} weight: nan").status().message(), HasSubstr("has weight nan"));
}

class CheckLabelsTest : public ::testing::Test {
 protected:
  CheckLabelsTest() {
    classes_.classes = 3;
    targets_.labels_dtype = v1::DT_FLOAT;
    targets_.labels_shape = Shape{2};
    batch_.size = 2;
  }

  ExampleSpec classes_;
  ExampleSpec targets_;
  Batch batch_;
};

TEST_F(CheckLabelsTest, ClassesAreInRange) {
  batch_.labels = Tensor::FromValues<int32_t>(Shape{2}, {0, 2});
  EXPECT_EQ(CheckLabels(batch_, classes_), absl::OkStatus());
  batch_.labels = Tensor::FromValues<int32_t>(Shape{2}, {0, 3});
  EXPECT_EQ(CheckLabels(batch_, classes_).message(), "label 3 of example 1 is not in [0, 3)");
  batch_.labels = Tensor::FromValues<int32_t>(Shape{2}, {-1, 0});
  EXPECT_EQ(CheckLabels(batch_, classes_).message(), "label -1 of example 0 is not in [0, 3)");
}

TEST_F(CheckLabelsTest, LabelsHaveTheTypeAndShapeOfTheModel) {
  batch_.labels = Tensor::FromValues<float>(Shape{2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(CheckLabels(batch_, targets_), absl::OkStatus());
  EXPECT_THAT(CheckLabels(batch_, classes_).message(), HasSubstr("built for int32 [2]"));
  batch_.labels = Tensor::FromValues<float>(Shape{2, 1}, {1, 2});
  EXPECT_THAT(CheckLabels(batch_, targets_).message(), HasSubstr("[2,1], but the model was built for float32 [2,2]"));
  batch_.labels = Tensor::FromValues<int32_t>(Shape{1}, {0});
  EXPECT_THAT(CheckLabels(batch_, classes_).message(), HasSubstr("labels are int32 [1]"));
}

TEST_F(CheckLabelsTest, WeightsAreOneNumberAnExample) {
  batch_.labels = Tensor::FromValues<int32_t>(Shape{2}, {0, 2});
  batch_.weights = Tensor::FromValues<float>(Shape{2}, {0, 1});
  EXPECT_EQ(CheckLabels(batch_, classes_), absl::OkStatus());
  batch_.weights = Tensor::FromValues<float>(Shape{1}, {1});
  EXPECT_THAT(CheckLabels(batch_, classes_).message(), HasSubstr("weights are float32 [1], but the batch needs"));
  batch_.weights = Tensor::FromValues<int32_t>(Shape{2}, {1, 1});
  EXPECT_THAT(CheckLabels(batch_, classes_).message(), HasSubstr("weights are int32 [2]"));
}

}  // namespace
}  // namespace lockstep
