#include "lockstep/common/tensor/float_chunks.h"

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/tensor/rounding.h"

namespace lockstep {
namespace {

TEST(FloatChunksTest, ReadsEveryRangeHoweverTheBytesAreCut) {
  std::vector<float> values(23);
  Philox(1, 2).FillNormal(absl::MakeSpan(values));
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  for (uint64_t seed = 0; seed < 50; ++seed) {
    // Each chunk is a separate copy, so that the sanitizer detects a read past its end.
    std::vector<std::vector<char>> copies;
    for (size_t at = 0, i = 0; at < bytes.size(); ++i) {
      const size_t size = std::min<size_t>(bytes.size() - at, Philox(seed, 3).At(i)[0] % 11);
      copies.emplace_back(bytes.begin() + at, bytes.begin() + at + size);
      at += size;
    }
    FloatChunks chunks;
    for (const auto& copy : copies) chunks.Append(absl::string_view(copy.data(), copy.size()));
    ASSERT_EQ(chunks.size(), 23);
    for (int64_t first = 0; first <= 23; ++first) {
      for (int64_t n = 0; first + n <= 23; ++n) {
        std::vector<float> copied(n, -1);
        chunks.CopyTo(first, n, copied.data());
        std::vector<float> added(n, 1);
        chunks.AddTo(first, n, added.data());
        for (int64_t i = 0; i < n; ++i) {
          EXPECT_EQ(copied[i], values[first + i]);
          EXPECT_EQ(added[i], 1 + values[first + i]);
        }
      }
    }
  }
}

TEST(FloatChunksTest, Reads16BitNumbersCutAnywhere) {
  for (const v1::DataType type : {v1::DT_BFLOAT16, v1::DT_HALF}) {
    std::vector<float> values(19);
    Philox(4, 2).FillNormal(absl::MakeSpan(values));
    RoundTo(type, 19, values.data());
    std::vector<uint16_t> numbers(19);
    Encode16(type, 19, values.data(), numbers.data());
    const absl::string_view bytes(reinterpret_cast<const char*>(numbers.data()), 38);
    for (size_t cut = 0; cut <= bytes.size(); ++cut) {
      const std::string left(bytes.substr(0, cut)), right(bytes.substr(cut));
      FloatChunks chunks;
      chunks.set_type(type);
      chunks.Append(left);
      chunks.Append(right);
      ASSERT_EQ(chunks.size(), 19);
      EXPECT_EQ(chunks.Contiguous(0, 1), nullptr);
      for (int64_t first = 0; first <= 19; ++first) {
        std::vector<float> copied(19 - first, -1), added(19 - first, 1);
        chunks.CopyTo(first, 19 - first, copied.data());
        chunks.AddTo(first, 19 - first, added.data());
        for (int64_t i = first; i < 19; ++i) {
          EXPECT_EQ(copied[i - first], values[i]);
          EXPECT_EQ(added[i - first], 1 + values[i]);
        }
      }
    }
    const FloatChunks whole(type, numbers.data(), 19);
    EXPECT_EQ(whole.SingleRun(), bytes.data());
    EXPECT_EQ(whole.bytes(), 38u);
  }
}

TEST(FloatChunksTest, ContiguousOnlyWithinOneAlignedRun) {
  alignas(16) float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  FloatChunks one(values, 8);
  EXPECT_EQ(one.Contiguous(2, 6), values + 2);
  FloatChunks two(values, 4);
  two.Append(absl::string_view(reinterpret_cast<const char*>(values + 4), 16));
  EXPECT_EQ(two.Contiguous(0, 5), nullptr);
  EXPECT_EQ(two.Contiguous(5, 3), values + 5);
  char shifted[33];
  std::memcpy(shifted + 1, values, 32);
  FloatChunks unaligned;
  unaligned.Append(absl::string_view(shifted + 1, 32));
  EXPECT_TRUE(unaligned.Contiguous(0, 8) == nullptr || reinterpret_cast<uintptr_t>(shifted + 1) % 4 == 0);
}

}  // namespace
}  // namespace lockstep
