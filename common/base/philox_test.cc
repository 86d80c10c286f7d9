#include "lockstep/common/base/philox.h"

#include <cmath>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Takes the key and the two halves of the counter: words 0 and 1 are the index, 2 and 3 the stream.
Philox::Block At(uint64_t key, uint64_t stream, uint64_t index) { return Philox(key, stream).At(index); }

// The known answers of Random123 (tests/kat_vectors, philox4x32 with 10 rounds).
TEST(PhiloxTest, GivesTheKnownAnswers) {
  EXPECT_EQ(At(0, 0, 0), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(At(~0ull, ~0ull, ~0ull), (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Digits of pi: counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
  EXPECT_EQ(At(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, ToUniformIsBelowOne) {
  EXPECT_EQ(Philox::ToUniform(0), 0.0f);
  EXPECT_LT(Philox::ToUniform(~0u), 1.0f);
  EXPECT_EQ(Philox::ToUniform(1u << 31), 0.5f);
}

TEST(PhiloxTest, FillsMatchTheBlocks) {
  const Philox philox(5, 6);
  std::vector<float> uniform(10);
  philox.FillUniform(absl::MakeSpan(uniform));
  for (size_t i = 0; i < uniform.size(); ++i) EXPECT_EQ(uniform[i], Philox::ToUniform(philox.At(i / 4)[i % 4]));
}

TEST(PhiloxTest, AShorterFillIsThePrefixOfALongerOne) {
  const Philox philox(5, 6);
  std::vector<float> all(103);
  philox.FillNormal(absl::MakeSpan(all));
  for (const size_t n : {0, 1, 2, 3, 4, 5, 50, 102}) {
    std::vector<float> some(n);
    philox.FillNormal(absl::MakeSpan(some));
    EXPECT_EQ(some, std::vector<float>(all.begin(), all.begin() + n));
  }
}

TEST(PhiloxTest, NormalsHaveTheirMoments) {
  std::vector<float> values(200000);
  Philox(1, 2).FillNormal(absl::MakeSpan(values));
  double mean = 0, variance = 0, fourth = 0;
  for (const double x : values) {
    mean += x / values.size();
    variance += x * x / values.size();
    fourth += x * x * x * x / values.size();
  }
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(variance, 1, 0.02);
  EXPECT_NEAR(fourth, 3, 0.1);
}

TEST(PhiloxTest, UniformsHaveTheirMoments) {
  std::vector<float> values(200000);
  Philox(1, 2).FillUniform(absl::MakeSpan(values));
  double mean = 0, variance = 0;
  for (const double x : values) {
    mean += x / values.size();
    variance += (x - 0.5) * (x - 0.5) / values.size();
  }
  EXPECT_NEAR(mean, 0.5, 0.005);
  EXPECT_NEAR(variance, 1.0 / 12, 0.002);
}

TEST(PhiloxTest, StepSlotUseAndSeedChangeTheNumbers) {
  std::set<Philox::Block> seen;
  int count = 0;
  for (const uint64_t seed : {0, 1}) {
    for (const char* use : {"dropout/a", "dropout/b"}) {
      for (int64_t step = 0; step < 50; ++step) {
        for (int64_t slot = 0; slot < 50; ++slot) {
          seen.insert(Philox::ForSlot(seed, use, step, slot).At(0));
          ++count;
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), count);
}

// Fingerprints and streams are derived from these hashes, so they must never change.
TEST(StableHashTest, IsTheSameInEveryRelease) {
  EXPECT_EQ(StableHash(""), 0xf52a15e9a9b5e89bu) << std::hex << StableHash("");
  EXPECT_EQ(StableHash("lockstep"), 0x64775feee16cd011u) << std::hex << StableHash("lockstep");
  EXPECT_EQ(StableHash("lockstep", 7), 0xd99e8ffe3c87691au) << std::hex << StableHash("lockstep", 7);
  EXPECT_EQ(Philox::ForSlot(1, "dropout", 2, 3).At(4)[0], 0xd85cf74fu)
      << std::hex << Philox::ForSlot(1, "dropout", 2, 3).At(4)[0];
}

TEST(StableHashTest, CountsEveryByte) {
  EXPECT_NE(StableHash("a"), StableHash("b"));
  EXPECT_NE(StableHash(absl::string_view("a\0", 2)), StableHash("a"));
  EXPECT_NE(StableHash("a", 1), StableHash("a", 2));
}

}  // namespace
}  // namespace lockstep
