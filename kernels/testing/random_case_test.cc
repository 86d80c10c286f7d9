#include "lockstep/kernels/testing/random_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr int64_t kSize = 20;

// Writes and returns a case's whole output: 3 rows of 4 elements with gaps of 2.
float* Rows(RandomCase* c) {
  float* const out = c->Output(3, 4, 6);
  for (int64_t i = 0; i < 16; ++i) {
    if (i % 6 < 4) out[i] = static_cast<float>(i);
  }
  return out;
}

TEST(RandomCaseTest, ANumberAlwaysDrawsTheSameCase) {
  for (int number = 0; number < 20; ++number) {
    RandomCase a(number), b(number);
    EXPECT_EQ(a.Size(1, 1000), b.Size(1, 1000));
    EXPECT_EQ(a.Integers<uint32_t>(5), b.Integers<uint32_t>(5));
    EXPECT_EQ(a.Description(), b.Description());
  }
}

TEST(RandomCaseTest, SizesStayInTheirRangeAndReachItsEnds) {
  std::set<int64_t> sizes;
  for (int number = 0; number < 2000; ++number) sizes.insert(RandomCase(number).Size(3, 70));
  EXPECT_EQ(*sizes.begin(), 3);
  EXPECT_EQ(*sizes.rbegin(), 70);
  EXPECT_EQ(sizes.size(), 68);
}

TEST(RandomCaseTest, NumbersAreOfEveryKind) {
  bool nan = false, infinite = false, minus_zero = false, subnormal = false, huge = false;
  for (int number = 0; number < 300; ++number) {
    for (const float x : RandomCase(number).Numbers(40)) {
      nan |= std::isnan(x);
      infinite |= std::isinf(x);
      minus_zero |= x == 0 && std::signbit(x);
      subnormal |= std::fpclassify(x) == FP_SUBNORMAL;
      huge |= std::isfinite(x) && std::abs(x) > 1e37f;
    }
    for (const float x : RandomCase(number).FiniteNumbers(40)) EXPECT_LE(std::abs(x), 4);
  }
  EXPECT_TRUE(nan && infinite && minus_zero && subnormal && huge);
}

TEST(RandomCaseTest, FindsWritesNextToAnArray) {
  for (int number = 0; number < 10; ++number) {
    RandomCase c(number);
    float* const out = Rows(&c);
    EXPECT_EQ(c.Violation(), "");
    // Writes to the side without a protected page.
    const bool at_end = reinterpret_cast<uintptr_t>(out + 16) % 4096 == 0;
    out[at_end ? -1 : 16] = 1;
    EXPECT_EQ(c.Violation(), "wrote next to array 0");
  }
}

TEST(RandomCaseTest, FindsWritesBetweenRows) {
  RandomCase c(1);
  Rows(&c)[5] = 1;
  EXPECT_EQ(c.Violation(), "wrote between the rows of output 0, element 5");
}

TEST(RandomCaseTest, FindsUnwrittenElements) {
  RandomCase c(1);
  float* const out = c.Output(kSize);
  std::fill_n(out, kSize - 1, 0.0f);
  EXPECT_EQ(c.Violation(), "did not write element 19 of output 0");
}

TEST(RandomCaseTest, ResultsDifferByAnyBitUnlessNaN) {
  const auto results = [](float x) {
    RandomCase c(1);
    c.Result(x);
    return c.Results();
  };
  const std::vector<std::string> zero = results(0.0f);
  const std::vector<std::string> minus_zero = results(-0.0f);
  RandomCase c(1);
  c.Result(0.0f);
  EXPECT_EQ(c.DifferenceFrom(zero), "");
  EXPECT_EQ(c.DifferenceFrom(minus_zero), "element 0 of output 0 is 0x0 (0), and 0x80000000 (-0) on another target");
  EXPECT_EQ(results(std::nanf("")), results(-std::nanf("7")));
  EXPECT_NE(results(std::nanf("")), results(std::numeric_limits<float>::infinity()));
}

TEST(RandomCaseDeathTest, AFaultNamesItsCase) {
  volatile float sum = 0;
  const auto read_around = [&] {
    ForEachRandomCase(4, [&](RandomCase& c) {
      const float* const x = c.Input(c.Numbers(kSize));
      const bool at_begin = reinterpret_cast<uintptr_t>(x) % 4096 == 0;
      sum = x[at_begin ? -1 : kSize];
    });
  };
  EXPECT_DEATH(read_around(), "A fault in case 0 on ");
}

}  // namespace
}  // namespace lockstep
