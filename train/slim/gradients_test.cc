#include "lockstep/train/slim/gradients.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train::slim {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class GradientsTest : public ::testing::Test {
 protected:
  GradientsTest() {
    v_.set_name("v");
    none_.set_name("none");
  }
  std::vector<GradientAndVariable> Pairs() { return {{absl::MakeSpan(gradient_), &v_}}; }
  std::vector<GradientAndVariable> MissingPairs() { return {{absl::Span<float>(), &none_}}; }

  std::vector<float> gradient_ = {1, 2, 3};
  v1::VariableSpec v_, none_;
};

// GRAD-01
TEST_F(GradientsTest, ClipsAGradientByItsOwnNorm) {
  auto pairs = Pairs();
  ClipGradientNorms(pairs, 1);
  EXPECT_THAT(gradient_, ElementsAre(FloatEq(0.26726124f), FloatEq(0.53452248f), FloatEq(0.80178373f)));
}

// GRAD-03
TEST_F(GradientsTest, ClippingLeavesAMissingGradientMissing) {
  auto pairs = MissingPairs();
  ClipGradientNorms(pairs, 1);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_FALSE(pairs[0].has_gradient());
}

// GRAD-06
TEST_F(GradientsTest, ClippingLeavesAZeroGradientZero) {
  gradient_ = {0, 0};
  auto pairs = Pairs();
  ClipGradientNorms(pairs, 1);
  EXPECT_THAT(gradient_, ElementsAre(0, 0));
}

TEST_F(GradientsTest, ClipsEachGradientAlone) {
  std::vector<float> other = {0.5f};
  auto pairs = Pairs();
  pairs.push_back({absl::MakeSpan(other), &none_});
  ClipGradientNorms(pairs, 1);
  EXPECT_THAT(gradient_, ElementsAre(FloatEq(0.26726124f), FloatEq(0.53452248f), FloatEq(0.80178373f)));
  EXPECT_THAT(other, ElementsAre(0.5f));
}

// GRAD-07
TEST_F(GradientsTest, MakesAFunctionThatClips) {
  gradient_ = {4};
  auto pairs = Pairs();
  EXPECT_TRUE(ClipGradientNormsFn(3)(pairs, 0).ok());
  EXPECT_THAT(gradient_, ElementsAre(3));
}

// GRAD-09
TEST_F(GradientsTest, RefusesNoMultipliers) {
  auto pairs = Pairs();
  const absl::Status status = MultiplyGradients(pairs, {}, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("gradient_multipliers: is empty"));
}

// GRAD-11
TEST_F(GradientsTest, RefusesToMultiplyAMissingGradient) {
  auto pairs = MissingPairs();
  const absl::Status status = MultiplyGradients(pairs, {{"none", 3.7f}}, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("none, which has no gradient"));
}

// GRAD-12
TEST_F(GradientsTest, MultipliesTheGradientOfAVariable) {
  auto pairs = Pairs();
  EXPECT_TRUE(MultiplyGradients(pairs, {{"v", 3.7f}}, 0).ok());
  EXPECT_THAT(gradient_, ElementsAre(FloatEq(3.7f), FloatEq(7.4f), FloatNear(11.1f, 1e-5f)));
}

TEST_F(GradientsTest, AVariableIsAKeyOfMultipliers) {
  auto pairs = Pairs();
  EXPECT_TRUE(MultiplyGradients(pairs, {{*pairs[0].variable, 2.0f}}, 0).ok());
  EXPECT_THAT(gradient_, ElementsAre(2, 4, 6));
}

// GRAD-16
TEST_F(GradientsTest, SaysNothingOfAVariableThatIsNotThere) {
  auto pairs = Pairs();
  EXPECT_TRUE(MultiplyGradients(pairs, {{"other", 2.0f}}, 0).ok());
  EXPECT_THAT(gradient_, ElementsAre(1, 2, 3));
}

// GRAD-17
TEST_F(GradientsTest, AsksAFunctionForTheFactorOfEachStep) {
  const GradientMultipliers multipliers = {{"v", [](int64_t step) { return step == 0 ? 3.7f : 1.0f; }}};
  for (const auto& [step, expected] : {std::make_pair(0, 3.7f), std::make_pair(1, 1.0f)}) {
    gradient_ = {1};
    auto pairs = Pairs();
    EXPECT_TRUE(MultiplyGradients(pairs, multipliers, step).ok());
    EXPECT_THAT(gradient_, ElementsAre(expected));
  }
}

TEST_F(GradientsTest, SummarizesAHistogramAndTheNormOfEach) {
  gradient_ = {3, 4};
  auto pairs = Pairs();
  pairs.push_back(MissingPairs()[0]);
  SummaryBuilder summaries;
  EXPECT_TRUE(AddGradientsSummaries(pairs, &summaries).ok());
  const v1::Event event = summaries.Build(7);
  ASSERT_EQ(event.summary().value_size(), 2);
  EXPECT_EQ(event.summary().value(0).tag(), "v/gradient");
  EXPECT_EQ(event.summary().value(0).histo().num(), 2);
  EXPECT_EQ(event.summary().value(1).tag(), "v/gradient_norm");
  EXPECT_EQ(event.summary().value(1).simple_value(), 5);
}

}  // namespace
}  // namespace lockstep::train::slim
