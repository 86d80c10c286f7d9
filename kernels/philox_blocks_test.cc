#include "lockstep/kernels/philox_blocks.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/philox_block.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

// Checks the known answers that Random123 publishes for philox4x32-10.
TEST(PhiloxBlocksTest, BlocksAreThePublishedOnes) {
  EXPECT_EQ(PhiloxBlock(0, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(PhiloxBlock(~0ull, ~0ull, ~0ull),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(PhiloxBlocksTest, TargetsMatchOneBlockAtATime) {
  constexpr uint32_t kUntouched = 0x12345678;
  // Includes block numbers whose lower half overflows within a vector, and one that overflows as a whole.
  for (const uint64_t first : {0ull, 5ull, 0xFFFFFFF0ull, 0xFFFFFFFDull, 0x7FFFFFFFFFFFFFFEull, ~0ull - 20}) {
    for (int64_t size = 0; size < 300; size += 1 + size / 40) {
      std::vector<uint32_t> expected(size + 8, kUntouched);
      for (int64_t i = 0; i < size; ++i) expected[i] = PhiloxBlock(3ull << 40 | 7, ~11ull, first + i / 4)[i % 4];
      ForEachTarget([&] {
        std::vector<uint32_t> actual(size + 8, kUntouched);
        FillPhiloxBlocks(3ull << 40 | 7, ~11ull, first, size, actual.data());
        ASSERT_EQ(actual, expected) << first << " " << size;
      });
    }
  }
}

TEST(PhiloxBlocksTest, TargetsAgreeOnRandomStreams) {
  ForEachRandomCase(1000, [](RandomCase& c) {
    const std::vector<uint64_t> key_and_stream = c.Integers<uint64_t>(2);
    // In half of the cases, the lower half of the block number is about to overflow.
    uint64_t first = c.Integers<uint64_t>(1)[0];
    if (c.OneIn(2)) first = (first | 0xFFFFFFFF) - static_cast<uint64_t>(c.Between(0, 40));
    const int64_t size = c.Size(0, 500);
    uint32_t* const out = c.Output<uint32_t>(size);
    FillPhiloxBlocks(key_and_stream[0], key_and_stream[1], first, size, out);
    for (int64_t i = 0; i < size; ++i) {
      const uint64_t block = first + static_cast<uint64_t>(i / 4);
      ASSERT_EQ(out[i], PhiloxBlock(key_and_stream[0], key_and_stream[1], block)[i % 4]) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep
