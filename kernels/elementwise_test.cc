#include "lockstep/kernels/elementwise.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

std::vector<int64_t> Sizes() {
  std::vector<int64_t> sizes;
  for (int64_t size = 0; size < 200; size += 1 + size / 30) sizes.push_back(size);
  return sizes;
}

TEST(ElementwiseTest, SumsAreTheRoundedOnesOnEveryTarget) {
  for (const int64_t size : Sizes()) {
    const std::vector<float> x = RandomFloats(size, 1);
    const std::vector<float> y = RandomFloats(size, 2);
    ForEachTarget([&] {
      ResultArray z(size);
      AddElements(size, x.data(), y.data(), z.data());
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(z.values()[i], x[i] + y[i]) << i << " of " << size;
      ASSERT_TRUE(z.borders_intact());
    });
  }
}

float InTheDocumentedOrder(const std::vector<float>& s) {
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

TEST(ElementwiseTest, PenaltiesMatchTheChainsOnAllTargets) {
  for (const int64_t size : Sizes()) {
    const std::vector<float> w = RandomFloats(size, 3);
    std::vector<float> absolute(8), squares(8);
    for (int64_t i = 0; i < size; ++i) {
      absolute[i % 8] += std::abs(w[i]);
      squares[i % 8] = std::fma(w[i], w[i], squares[i % 8]);
    }
    ForEachTarget([&] {
      const PenaltySums sums = SumPenalties(size, w.data());
      ASSERT_EQ(sums.absolute, InTheDocumentedOrder(absolute)) << size;
      ASSERT_EQ(sums.squares, InTheDocumentedOrder(squares)) << size;
    });
  }
}

TEST(ElementwiseTest, PenaltyGradientsMatchOnAllTargets) {
  for (const int64_t size : Sizes()) {
    std::vector<float> w = RandomFloats(size, 4);
    for (int64_t i = 0; i < size; i += 5) w[i] = i % 2 == 0 ? 0.0f : -0.0f;
    const std::vector<float> before = RandomFloats(size, 5);
    for (const float l1 : {0.0f, 0.3f}) {
      ForEachTarget([&] {
        ResultArray g(size);
        std::copy(before.begin(), before.end(), g.data());
        AddPenaltyGradient(l1, 0.7f, size, w.data(), g.data());
        for (int64_t i = 0; i < size; ++i) {
          const float sign = w[i] > 0 ? 1.0f : w[i] < 0 ? -1.0f : 0.0f;
          ASSERT_EQ(g.values()[i], std::fma(0.7f, w[i], before[i]) + l1 * sign) << i << " of " << size;
        }
        ASSERT_TRUE(g.borders_intact());
      });
    }
  }
}

TEST(ElementwiseTest, TargetsAgreeOnRandomShapes) {
  ForEachRandomCase(1000, [](RandomCase& c) {
    const int64_t size = c.Size(0, 500);
    const std::vector<float> x = c.Numbers(size), y = c.Numbers(size);
    const bool in_place = c.OneIn(2);
    float* const z = in_place ? c.InOut(y) : c.Output(size);
    AddElements(size, c.Input(x), in_place ? z : c.Input(y), z);
    const PenaltySums sums = SumPenalties(size, c.Input(x));
    c.Result(sums.absolute);
    c.Result(sums.squares);
    const float l1 = c.OneIn(2) ? 0 : c.Positive(1), l2 = c.Positive(1);
    float* const g = c.InOut(y);
    AddPenaltyGradient(l1, l2, size, c.Input(x), g);
    std::vector<float> absolute(8), squares(8);
    for (int64_t i = 0; i < size; ++i) {
      absolute[i % 8] += std::abs(x[i]);
      squares[i % 8] = std::fma(x[i], x[i], squares[i % 8]);
      ASSERT_PRED2(SameFloats, z[i], x[i] + y[i]) << i;
      const float fused = std::fma(l2, x[i], y[i]);
      const float sign = x[i] > 0 ? l1 : x[i] < 0 ? -l1 : 0.0f;
      ASSERT_PRED2(SameFloats, g[i], l1 == 0 ? fused : fused + sign) << i;
    }
    ASSERT_PRED2(SameFloats, sums.absolute, InTheDocumentedOrder(absolute));
    ASSERT_PRED2(SameFloats, sums.squares, InTheDocumentedOrder(squares));
  });
}

}  // namespace
}  // namespace lockstep
