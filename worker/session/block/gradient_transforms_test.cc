#include "lockstep/worker/session/block/gradient_transforms.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Returns a model with "a" of two elements, the untrained "mean", and "b" of three.
v1::ModelSpec ThreeVariables() {
  v1::ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "variables { name: 'a/kernel' shape: 2 trainable: true } variables { name: 'mean' shape: 2 } "
      "variables { name: 'b/kernel' shape: 3 trainable: true }",
      &model));
  return model;
}

config::v1::OptimizerConfig Parse(const std::string& text) {
  config::v1::OptimizerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

class Sink : public GradientSink {
 public:
  bool OnLoss(float loss) override { return loss < 100; }
  void OnUpdate(int index, Elements value) override { updates.push_back(*value.as<float>()); }
  float* GradientBuffer(int variable) override { return gradients[variable].data(); }
  void OnGradient(int variable) override { order.push_back(variable); }

  std::vector<std::vector<float>> gradients = {{3, -4}, {7, 7}, {0, 12, 0}};
  std::vector<float> updates;
  std::vector<int> order;
};

// Returns the gradients (3, -4) and (0, 12, 0) after the transforms. Their norms are 5 and 12, the global norm is 13.
std::vector<std::vector<float>> Transformed(const std::string& config) {
  Sink sink;
  const auto transforms = GradientTransforms::Create(Parse(config), ThreeVariables(), &sink);
  EXPECT_TRUE(transforms.ok()) << transforms.status();
  EXPECT_TRUE((*transforms)->OnLoss(1));
  (*transforms)->OnGradient(2);
  (*transforms)->OnGradient(0);
  EXPECT_THAT(sink.order, ElementsAre(2, 0));
  EXPECT_THAT(sink.gradients[1], ElementsAre(7, 7));
  return {sink.gradients[0], sink.gradients[2]};
}

void ExpectTransformed(const std::string& config, const std::vector<float>& a, const std::vector<float>& b) {
  const auto is = Transformed(config);
  EXPECT_THAT(is[0], Pointwise(FloatEq(), a)) << config;
  EXPECT_THAT(is[1], Pointwise(FloatEq(), b)) << config;
}

TEST(GradientTransformsTest, LeaveGradientsAloneWithoutAConfiguration) { ExpectTransformed("", {3, -4}, {0, 12, 0}); }

TEST(GradientTransformsTest, MultiplyWhatMatches) {
  ExpectTransformed("multipliers { variables: 'b/' factor: 0.5 }", {3, -4}, {0, 6, 0});
  ExpectTransformed("multipliers { variables: 'kernel$' factor: 2 } multipliers { variables: '^a' factor: -1 }",
                    {-6, 8}, {0, 24, 0});
  ExpectTransformed("multipliers { variables: 'a' factor: 0 }", {0, 0}, {0, 12, 0});
}

TEST(GradientTransformsTest, ClipByValue) { ExpectTransformed("clip { by_value: 3.5 }", {3, -3.5}, {0, 3.5, 0}); }

TEST(GradientTransformsTest, ClipEachVariableByItsNorm) {
  ExpectTransformed("clip { by_norm: 6 }", {3, -4}, {0, 6, 0});
  ExpectTransformed("clip { by_norm: 1 }", {0.6f, -0.8f}, {0, 1, 0});
}

TEST(GradientTransformsTest, ClipAllByTheirGlobalNorm) {
  ExpectTransformed("clip { by_global_norm: 13 }", {3, -4}, {0, 12, 0});
  ExpectTransformed("clip { by_global_norm: 6.5 }", {1.5f, -2}, {0, 6, 0});
}

TEST(GradientTransformsTest, ClipsByValueThenNormThenGlobalNorm) {
  // After multiplying: (12, -16) and (0, 12, 0). After clipping by value: (10, -10) and (0, 10, 0). After clipping by
  // norm: (5, -5) and (0, 5 sqrt 2, 0), with a global norm of 10.
  const float root = std::sqrt(50.0f);
  ExpectTransformed(
      "multipliers { variables: 'a' factor: 4 } clip { by_value: 10 by_norm: 7.0710678 by_global_norm: 5 }",
      {2.5f, -2.5f}, {0, root / 2, 0});
}

TEST(GradientTransformsTest, HoldGradientsBackForTheGlobalNormAlone) {
  for (const bool global : {false, true}) {
    Sink sink;
    const auto transforms = GradientTransforms::Create(
        Parse(global ? "clip { by_global_norm: 1 }" : "clip { by_norm: 1 }"), ThreeVariables(), &sink);
    ASSERT_TRUE(transforms.ok());
    EXPECT_TRUE((*transforms)->OnLoss(1));
    (*transforms)->OnGradient(2);
    EXPECT_EQ(sink.order.size(), global ? 0 : 1);
    // Abandons the slot, so that the next one starts from scratch.
    EXPECT_FALSE((*transforms)->OnLoss(100));
    EXPECT_TRUE((*transforms)->OnLoss(1));
    (*transforms)->OnGradient(0);
    EXPECT_EQ(sink.order.size(), global ? 0 : 2);
  }
}

TEST(GradientTransformsTest, PassUpdatesOn) {
  Sink sink;
  const auto transforms = GradientTransforms::Create(config::v1::OptimizerConfig(), ThreeVariables(), &sink);
  ASSERT_TRUE(transforms.ok());
  (*transforms)->OnUpdate(0, std::vector<float>{5});
  EXPECT_THAT(sink.updates, ElementsAre(5));
}

TEST(GradientTransformsTest, SumLongGradientsToTheEnd) {
  v1::ModelSpec model;
  model.add_variables()->set_trainable(true);
  model.mutable_variables(0)->add_shape(1003);
  Sink sink;
  sink.gradients = {std::vector<float>(1003, 2)};
  const auto transforms = GradientTransforms::Create(Parse("clip { by_norm: 1 }"), model, &sink);
  ASSERT_TRUE(transforms.ok());
  EXPECT_TRUE((*transforms)->OnLoss(1));
  (*transforms)->OnGradient(0);
  EXPECT_FLOAT_EQ(sink.gradients[0][1002], 1 / std::sqrt(1003.0f));
}

TEST(GradientTransformsTest, DoNotHideWhatIsNotFinite) {
  for (const char* config : {"clip { by_norm: 1 }", "clip { by_global_norm: 1 }"}) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Sink sink;
      sink.gradients[0][1] = bad;
      const auto transforms = GradientTransforms::Create(Parse(config), ThreeVariables(), &sink);
      ASSERT_TRUE(transforms.ok());
      EXPECT_TRUE((*transforms)->OnLoss(1));
      (*transforms)->OnGradient(0);
      (*transforms)->OnGradient(2);
      EXPECT_TRUE(std::isnan(sink.gradients[0][0])) << config << " " << bad;
    }
  }
}

TEST(GradientTransformsTest, RefuseAMultiplierOfNothing) {
  Sink sink;
  for (const char* variables : {"kernels", "mean"}) {
    const auto transforms = GradientTransforms::Create(
        Parse(absl::StrCat("multipliers { variables: '", variables, "' factor: 2 }")), ThreeVariables(), &sink);
    EXPECT_TRUE(absl::IsInvalidArgument(transforms.status()));
    EXPECT_THAT(std::string(transforms.status().message()), HasSubstr(variables));
  }
}

}  // namespace
}  // namespace lockstep
