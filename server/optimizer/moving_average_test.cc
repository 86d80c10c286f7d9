#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/server/optimizer/optimizer_groups.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

std::unique_ptr<Optimizer> Make(const std::string& text) {
  config::v1::OptimizerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
  auto optimizer = Optimizer::Create(config);
  EXPECT_TRUE(optimizer.ok()) << optimizer.status();
  return *std::move(optimizer);
}

// A variable of two elements under an optimizer whose last state is the average.
class MovingAverageTest : public ::testing::Test {
 protected:
  // Makes one update that sets the variable to these values, regardless of the average, by using a rate of 1 and a
  // suitable gradient.
  void UpdateTo(Optimizer* optimizer, std::vector<float> values) {
    optimizer->BeginStep(1);
    optimizer->SetGlobalStep(++step_);
    const std::vector<float> gradient = {values_[0] - values[0], values_[1] - values[1]};
    const float* in[] = {average_.data()};
    float* out[] = {average_.data()};
    optimizer->Apply(2, gradient.data(), 1, values_.data(), values_.data(), in, out);
    optimizer->EndStep();
    EXPECT_EQ(values_, values);
  }

  int64_t step_ = 0;
  std::vector<float> values_ = {10, 11};
  std::vector<float> average_ = {10, 11};
};

// EMA-01, EMA-04: TensorFlow's moving_averages_test, with its numbers.
TEST_F(MovingAverageTest, MovesByOneLessTheDecay) {
  const auto optimizer = Make("sgd {} moving_average { decay: 0.25 }");
  UpdateTo(optimizer.get(), {1, 2});
  EXPECT_THAT(average_, ElementsAre(FloatEq(3.25f), FloatEq(4.25f)));
  UpdateTo(optimizer.get(), {1, 2});
  EXPECT_THAT(average_, ElementsAre(FloatEq(1.5625f), FloatEq(2.5625f)));
}

// EMA-02: with the number of updates, d = min(decay, (1 + n) / (10 + n)).
TEST_F(MovingAverageTest, MovesFasterAtFirstByUpdateCount) {
  const auto optimizer = Make("sgd {} moving_average { decay: 0.25 num_updates: true }");
  UpdateTo(optimizer.get(), {1, 2});  // d = 2 / 11
  EXPECT_THAT(average_, ElementsAre(FloatEq(10 - 9 * (1 - 2.0f / 11)), FloatEq(11 - 9 * (1 - 2.0f / 11))));
  const float first = average_[0];
  UpdateTo(optimizer.get(), {1, 2});  // 3 / 12 is the decay
  EXPECT_THAT(average_[0], FloatEq(first - (first - 1) * 0.75f));
  step_ = 1000;
  const float before = average_[0];
  UpdateTo(optimizer.get(), {1, 2});
  EXPECT_THAT(average_[0], FloatEq(before - (before - 1) * 0.75f)) << "it stays there";
}

// EMA-06, EMA-07
TEST_F(MovingAverageTest, IsTheLastStateUnderTensorFlowsName) {
  const auto adam = Make("adam {} moving_average { decay: 0.9 }");
  ASSERT_EQ(adam->state().size(), 3u);
  EXPECT_EQ(adam->state()[2].name, "ExponentialMovingAverage");
  EXPECT_TRUE(adam->state()[2].starts_at_value);
  EXPECT_FALSE(adam->state()[0].starts_at_value);
  EXPECT_EQ(adam->scalars().size(), 2u);
}

TEST_F(MovingAverageTest, ChangesNoWeight) {
  const auto plain = Make("momentum { momentum: 0.5 }");
  const auto averaged = Make("momentum { momentum: 0.5 } moving_average { decay: 0.9 }");
  std::vector<float> a = {1, 2}, b = a, ma = {0, 0}, mb = ma, average = a;
  for (int i = 0; i < 5; ++i) {
    const std::vector<float> gradient = {0.1f * static_cast<float>(i), -0.3f};
    for (Optimizer* optimizer : {plain.get(), averaged.get()}) {
      optimizer->BeginStep(0.1f);
      optimizer->SetGlobalStep(i + 1);
    }
    const float* plain_in[] = {ma.data()};
    float* plain_out[] = {ma.data()};
    plain->Apply(2, gradient.data(), 2, a.data(), a.data(), plain_in, plain_out);
    const float* averaged_in[] = {mb.data(), average.data()};
    float* averaged_out[] = {mb.data(), average.data()};
    averaged->Apply(2, gradient.data(), 2, b.data(), b.data(), averaged_in, averaged_out);
    EXPECT_EQ(a, b);
    EXPECT_EQ(ma, mb);
  }
}

TEST_F(MovingAverageTest, SkipsAVariableWithoutAverage) {
  const auto optimizer = Make("momentum { momentum: 0.5 } moving_average { decay: 0.9 }");
  std::vector<float> value = {1, 2}, momentum = {0, 0};
  const std::vector<float> gradient = {1, 1};
  optimizer->BeginStep(1);
  const float* in[] = {momentum.data()};
  float* out[] = {momentum.data()};
  optimizer->Apply(2, gradient.data(), 1, value.data(), value.data(), in, out);
  EXPECT_THAT(value, ElementsAre(0, 1));
}

TEST_F(MovingAverageTest, ADecayThatIsNoneIsRefused) {
  for (const float decay : {0.0f, 1.0f, -0.5f}) {
    config::v1::OptimizerConfig config;
    config.mutable_sgd();
    config.mutable_moving_average()->set_decay(decay);
    const absl::Status status = Optimizer::Create(config).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("optimizer.moving_average.decay"));
  }
}

TEST_F(MovingAverageTest, SettingsMayChangeWhereTheStateStays) {
  config::v1::OptimizerConfig before, after;
  before.mutable_momentum()->set_momentum(0.9f);
  after.mutable_momentum()->set_momentum(0.5f);
  EXPECT_TRUE(CheckSameState(before, after).ok());
  after.mutable_moving_average()->set_decay(0.9f);
  EXPECT_THAT(std::string(CheckSameState(before, after).message()),
              ::testing::HasSubstr("it would keep Momentum, ExponentialMovingAverage of each variable"));
  after.clear_moving_average();
  after.mutable_sgd();
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSameState(before, after)));
}

}  // namespace
}  // namespace lockstep
