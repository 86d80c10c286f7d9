#include "lockstep/worker/nn/layers/layer_op.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class LayerBuilderTest : public ::testing::Test {
 protected:
  static config::v1::Layer NamedLayer() {
    config::v1::Layer config;
    config.set_name("x");
    return config;
  }

  const config::v1::Layer config_ = NamedLayer();
  const Shape input_ = {4, 5};
  v1::ModelSpec spec_;
  LayerBuilder builder_{config_, absl::MakeConstSpan(&input_, 1), &spec_};
};

TEST_F(LayerBuilderTest, VariablesBearTheLayersName) {
  ASSERT_EQ(*builder_.AddVariable("a", {2, 3}, ConstantInitializer(5)), 0);
  ASSERT_EQ(*builder_.AddVariable("b", {}, ConstantInitializer(4), false), 1);
  EXPECT_EQ(spec_.variables(0).name(), "x/a");
  EXPECT_EQ(spec_.variables(0).dtype(), v1::DT_FLOAT);
  EXPECT_EQ(spec_.variables(0).shape_size(), 2);
  EXPECT_EQ(spec_.variables(0).shape(1), 3);
  EXPECT_TRUE(spec_.variables(0).trainable());
  EXPECT_EQ(spec_.variables(0).initializer().constant().value(), 5);
  EXPECT_EQ(spec_.variables(1).shape_size(), 0);
  EXPECT_FALSE(spec_.variables(1).trainable());
  EXPECT_EQ(spec_.variables(1).initializer().constant().value(), 4);
}

TEST_F(LayerBuilderTest, MovingAveragesNameTheirVariable) {
  ASSERT_TRUE(builder_.AddVariable("a", {2}, ConstantInitializer(0), false).ok());
  ASSERT_TRUE(builder_.AddVariable("b", {2}, ConstantInitializer(0), false).ok());
  EXPECT_EQ(builder_.AddMovingAverage(1, 0.5f), 0);
  EXPECT_EQ(builder_.AddMovingAverage(0, 0.25f), 1);
  EXPECT_EQ(spec_.update_ops(0).variable(), "x/b");
  EXPECT_EQ(spec_.update_ops(0).kind(), v1::UpdateOpSpec::MOVING_AVERAGE);
  EXPECT_EQ(spec_.update_ops(0).decay(), 0.5f);
  EXPECT_EQ(spec_.update_ops(1).variable(), "x/a");
}

TEST_F(LayerBuilderTest, ShapesHaveAtMost2To31Elements) {
  EXPECT_EQ(*builder_.OutputShape({2, 3}), (Shape{2, 3}));
  EXPECT_TRUE(builder_.OutputShape({kMaxElements}).ok());
  EXPECT_TRUE(builder_.OutputShape({1 << 16, 1 << 15}).ok());
  EXPECT_FALSE(builder_.OutputShape({kMaxElements + 1}).ok());
  EXPECT_FALSE(builder_.OutputShape({1 << 16, (1 << 15) + 1}).ok());
  // The product wraps around to a small number.
  EXPECT_FALSE(builder_.OutputShape({int64_t{1} << 62, 4}).ok());
  EXPECT_THAT(builder_.OutputShape({3, 0}).status().message(), HasSubstr("layer 'x': the output"));
  EXPECT_THAT(builder_.OutputShape({-1}).status().message(), HasSubstr("a dimension of -1"));
  EXPECT_THAT(builder_.AddVariable("a", {0}, ConstantInitializer(0)).status().message(), HasSubstr("variable 'a'"));
  EXPECT_EQ(spec_.variables_size(), 0);
}

TEST_F(LayerBuilderTest, RefusesUnknownActivationNumbers) {
  EXPECT_EQ(builder_.CheckActivation(config::v1::GELU), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(builder_.CheckActivation(static_cast<config::v1::Activation>(1000))));
}

TEST(InitializerTest, HasTheGivenValue) {
  EXPECT_TRUE(ConstantInitializer(0).has_zeros());
  EXPECT_EQ(ConstantInitializer(-2).constant().value(), -2);
}

}  // namespace
}  // namespace lockstep
