#include "lockstep/common/checkpoint/bundle/slice_key.h"

#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

v1::TensorSliceProto Slice(std::initializer_list<std::pair<int64_t, int64_t>> extents) {
  v1::TensorSliceProto slice;
  for (const auto& [start, length] : extents) {
    v1::TensorSliceProto::Extent* const extent = slice.add_extent();
    extent->set_start(start);
    if (length >= 0) extent->set_length(length);
  }
  return slice;
}

// The keys are those that TensorFlow 2.21 writes.
TEST(SliceKeyTest, IsTensorFlowsForStartsOfEverySize) {
  const std::pair<int64_t, const char*> cases[] = {
      {0, "0061000101018081"},
      {63, "006100010101bf81"},
      {64, "006100010101c04081"},
      {8191, "006100010101dfff81"},
      {8192, "006100010101e0200081"},
      {1048575, "006100010101efffff81"},
      {1048576, "006100010101f010000081"},
      {134217727, "006100010101f7ffffff81"},
      {134217728, "006100010101f80800000081"},
      {17179869184, "006100010101fc040000000081"},
      {2199023255551, "006100010101fdffffffffff81"},
      {2199023255552, "006100010101fe02000000000081"},
      {281474976710655, "006100010101feffffffffffff81"},
      {281474976710656, "006100010101ff0100000000000081"},
      {36028797018963967, "006100010101ff7fffffffffffff81"},
      {36028797018963968, "006100010101ff808000000000000081"},
      {4611686018427387902, "006100010101ffbffffffffffffffe81"},
  };
  for (const auto& [start, key] : cases) {
    EXPECT_EQ(absl::BytesToHexString(SliceKey("a", Slice({{start, 1}}))), key) << start;
  }
}

TEST(SliceKeyTest, EncodesAWholeDimensionAsMinusOne) {
  EXPECT_EQ(absl::BytesToHexString(SliceKey("n\xc3\xbf", Slice({{0, -1}, {1, 1}}))), "006ec3bf00010102807f8181");
}

TEST(SliceKeyTest, EscapesTheBytesThatEndAName) {
  const std::string key = SliceKey(absl::string_view("a\0b\xff", 4), Slice({}));
  EXPECT_EQ(absl::BytesToHexString(key), "006100ff62ff00000100");
}

TEST(SliceKeyTest, DistinguishesSlicesFromNames) {
  EXPECT_TRUE(IsSliceKey(SliceKey("a", Slice({{0, 1}}))));
  EXPECT_FALSE(IsSliceKey("a"));
  EXPECT_FALSE(IsSliceKey(""));
}

}  // namespace
}  // namespace lockstep
