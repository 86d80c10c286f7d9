#include "lockstep/worker/nn/layers/dropout.h"

#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr SlotKey kKey{11, 22, 33};

std::string Config(float rate) {
  std::ostringstream text;
  text << "name: 'x' dropout { rate: " << std::setprecision(9) << rate << " }";
  return text.str();
}

// Returns the uniform random number that decides whether element `i` is kept.
float Uniform(const SlotKey& key, int64_t i) {
  return Philox::ToUniform(Philox::ForSlot(key.seed, "x", key.step, key.slot).At(i / 4)[i % 4]);
}

void ExpectMask(int64_t batch, int64_t size, float rate, int threads = 1) {
  LayerRunner runner(MakeDropout, Config(rate), {Shape{size}}, {batch, threads, kKey});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  const std::vector<float> weights = RandomFloats(batch * size, 5);
  runner.Backward(weights);
  const float scale = 1.0f / (1.0f - rate);
  for (int64_t i = 0; i < batch * size; ++i) {
    const bool kept = Uniform(kKey, i) >= rate;
    ASSERT_EQ(runner.output()[i], kept ? runner.input()[i] * scale : 0) << i << " of " << batch * size;
    ASSERT_EQ(runner.input_gradient()[i], kept ? weights[i] * scale : 0) << i << " of " << batch * size;
  }
  EXPECT_EQ(runner.violations(), "");
}

TEST(DropoutTest, KeepsElementsWhoseNumberReachesRate) {
  for (const float rate : {0.1f, 0.5f, 0.9f}) ExpectMask(3, 101, rate);
}

TEST(DropoutTest, ArraysMayEndAnywhereInAVector) {
  for (int64_t size = 1; size <= 33; ++size) ExpectMask(1, size, 0.4f);
}

TEST(DropoutTest, MoreThan4096ElementsAreSeveralBlocks) {
  for (const int64_t size : {4095, 4096, 4097, 13000}) ExpectMask(1, size, 0.5f);
  ExpectMask(7, 4001, 0.3f, 3);
}

TEST(DropoutTest, ARateOfZeroKeepsEverything) { ExpectMask(2, 50, 0); }

TEST(DropoutTest, TheRateIsComparedExactly) {
  // A rate equal to the random number of element 5 keeps the element; the next greater float drops it.
  const float rate = Uniform(kKey, 5);
  ExpectMask(1, 9, rate);
  ExpectMask(1, 9, std::nextafter(rate, 1.0f));
}

TEST(DropoutTest, EachPartOfTheKeyChangesTheMask) {
  const auto output = [](const SlotKey& key) {
    LayerRunner runner(MakeDropout, Config(0.5f), {Shape{200}}, {1, 1, key});
    EXPECT_EQ(runner.Forward(), absl::OkStatus());
    return std::vector<float>(runner.output().begin(), runner.output().end());
  };
  const std::vector<float> mask = output(kKey);
  EXPECT_EQ(output(kKey), mask);
  EXPECT_NE(output({12, 22, 33}), mask);
  EXPECT_NE(output({11, 23, 33}), mask);
  EXPECT_NE(output({11, 22, 34}), mask);
}

TEST(DropoutTest, EvaluationIsTheIdentity) {
  LayerRunner runner(MakeDropout, Config(0.5f), {Shape{13}}, {2});
  ASSERT_EQ(runner.Forward(false), absl::OkStatus());
  EXPECT_EQ(FirstDifference(runner.output(), ToDoubles(runner.input()), 0), "");
}

TEST(DropoutTest, TheGradientMayReplaceTheOutputs) {
  LayerRunner runner(MakeDropout, Config(0.5f), {Shape{45}}, {3});
  const std::vector<float> weights = RandomFloats(3 * 45, 5);
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  runner.Backward(weights);
  const std::vector<double> expected = ToDoubles(runner.input_gradient());
  runner.Backward(weights, LayerRunner::InputGradients::kInPlace);
  EXPECT_EQ(FirstDifference(runner.input_gradient(), expected, 0), "");
}

TEST(DropoutTest, ANotANumberIsDroppedOrKept) {
  LayerRunner runner(MakeDropout, Config(0.5f), {Shape{21}}, {1, 1, kKey});
  for (float& x : runner.input()) x = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  for (int i = 0; i < 21; ++i) EXPECT_EQ(std::isnan(runner.output()[i]), Uniform(kKey, i) >= 0.5f) << i;
}

TEST(DropoutTest, RefusesARateOutOfRange) {
  for (const char* rate : {"-0.1", "1", "nan"}) {
    EXPECT_THAT(LayerStatus(MakeDropout, absl::StrCat("name: 'x' dropout { rate: ", rate, " }"), {Shape{3}}).message(),
                HasSubstr(absl::StrCat("rate is ", rate)));
  }
}

}  // namespace
}  // namespace lockstep
