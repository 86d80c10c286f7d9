#include "worker/nn/window.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

SlidingWindow Make(int64_t input, int64_t size, int64_t stride, Padding padding) {
  Layer layer;
  layer.set_name("x");
  ModelSpec spec;
  const Shape shape{input, input, 1};
  const LayerBuilder builder(layer, absl::MakeConstSpan(&shape, 1), &spec);
  google::protobuf::RepeatedField<int64_t> sizes, strides;
  sizes.Add(size);
  strides.Add(stride);
  const absl::StatusOr<WindowGeometry> geometry = MakeWindowGeometry(builder, sizes, strides, 1, padding);
  EXPECT_EQ(geometry.status(), absl::OkStatus());
  return geometry->x;
}

// Windows and padding before and after.
std::string Describe(const SlidingWindow& w) {
  return absl::StrCat(w.output, " ", w.padding, " ", std::max<int64_t>(0, w.span() - w.padding - w.input));
}

TEST(WindowTest, SamePadsTheSmallerHalfBefore) {
  EXPECT_EQ(Describe(Make(7, 3, 1, SAME)), "7 1 1");
  EXPECT_EQ(Describe(Make(6, 3, 2, SAME)), "3 0 1");
  EXPECT_EQ(Describe(Make(7, 3, 2, SAME)), "4 1 1");
  EXPECT_EQ(Describe(Make(5, 2, 1, SAME)), "5 0 1");
  EXPECT_EQ(Describe(Make(5, 4, 3, SAME)), "2 1 1");
  EXPECT_EQ(Describe(Make(5, 1, 2, SAME)), "3 0 0");
  EXPECT_EQ(Describe(Make(2, 5, 1, SAME)), "2 2 2");
}

TEST(WindowTest, ValidPadsNothing) {
  EXPECT_EQ(Describe(Make(7, 3, 1, VALID)), "5 0 0");
  EXPECT_EQ(Describe(Make(6, 3, 2, VALID)), "2 0 0");
  EXPECT_EQ(Describe(Make(7, 7, 9, VALID)), "1 0 0");
}

}  // namespace
}  // namespace lockstep
