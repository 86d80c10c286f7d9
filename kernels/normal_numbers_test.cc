#include "lockstep/kernels/normal_numbers.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/philox_blocks.h"
#include "lockstep/kernels/portable_math.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

// Returns random words, some of which put a fraction or an angle at or next to a multiple of an eighth of its range.
std::vector<uint32_t> Words() {
  std::vector<uint32_t> words(2 * kNormalPairs * 500);
  FillPhiloxBlocks(1, 2, 0, static_cast<int64_t>(words.size()), words.data());
  for (size_t i = 0; i < words.size() / 2; ++i) {
    const auto beside = static_cast<uint32_t>(i % 5) - 2;
    if (i % 7 == 0) words[i] = static_cast<uint32_t>(i % 8) * 0x20000000u + beside;
  }
  return words;
}

// Expects the same pairs as the scalar functions compute from `words`.
void ExpectPairs(const uint32_t* words, const double* first, const double* second) {
  for (int i = 0; i < kNormalPairs; ++i) {
    const uint32_t* const pair = words + 2 * i;
    const double u = (static_cast<double>(pair[0]) + 1.0) * 0x1p-32;
    const double angle = 2.0 * M_PI * static_cast<double>(pair[1]) * 0x1p-32;
    const double radius = std::sqrt(-2.0 * portable::Log(u));
    const double expected[] = {radius * portable::Cos(angle), radius * portable::Sin(angle)};
    ASSERT_EQ(std::memcmp(&first[i], &expected[0], sizeof(double)), 0) << pair[0] << " " << pair[1];
    ASSERT_EQ(std::memcmp(&second[i], &expected[1], sizeof(double)), 0) << pair[0] << " " << pair[1];
  }
}

TEST(NormalNumbersTest, ArePairsOfThePortableFunctions) {
  const std::vector<uint32_t> words = Words();
  ForEachTarget([&] {
    for (size_t begin = 0; begin < words.size(); begin += 2 * kNormalPairs) {
      double first[kNormalPairs], second[kNormalPairs];
      NormalPairs(&words[begin], first, second);
      ExpectPairs(&words[begin], first, second);
    }
  });
}

TEST(NormalNumbersTest, TargetsAgreeOnRandomWords) {
  ForEachRandomCase(500, [](RandomCase& c) {
    const std::vector<uint32_t> words = c.Integers<uint32_t>(2 * kNormalPairs);
    double* const first = c.Output<double>(kNormalPairs);
    double* const second = c.Output<double>(kNormalPairs);
    NormalPairs(c.Input(words), first, second);
    ExpectPairs(words.data(), first, second);
  });
}

}  // namespace
}  // namespace lockstep
