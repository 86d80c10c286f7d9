#include "lockstep/worker/nn/layers/images/window.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

SlidingWindow Make(int64_t input, int64_t size, int64_t stride, config::v1::Padding padding) {
  config::v1::Layer layer;
  layer.set_name("x");
  v1::ModelSpec spec;
  const Shape shape{input, input, 1};
  const LayerBuilder builder(layer, absl::MakeConstSpan(&shape, 1), &spec);
  google::protobuf::RepeatedField<int64_t> sizes, strides;
  sizes.Add(size);
  strides.Add(stride);
  const absl::StatusOr<WindowGeometry> geometry = MakeWindowGeometry(builder, sizes, strides, 1, padding);
  EXPECT_EQ(geometry.status(), absl::OkStatus());
  return geometry->x;
}

// Lists the number of windows and the padding before and after.
std::string Describe(const SlidingWindow& w) {
  return absl::StrCat(w.output, " ", w.padding, " ", std::max<int64_t>(0, w.span() - w.padding - w.input));
}

TEST(WindowTest, SamePadsTheSmallerHalfBefore) {
  EXPECT_EQ(Describe(Make(7, 3, 1, config::v1::SAME)), "7 1 1");
  EXPECT_EQ(Describe(Make(6, 3, 2, config::v1::SAME)), "3 0 1");
  EXPECT_EQ(Describe(Make(7, 3, 2, config::v1::SAME)), "4 1 1");
  EXPECT_EQ(Describe(Make(5, 2, 1, config::v1::SAME)), "5 0 1");
  EXPECT_EQ(Describe(Make(5, 4, 3, config::v1::SAME)), "2 1 1");
  EXPECT_EQ(Describe(Make(5, 1, 2, config::v1::SAME)), "3 0 0");
  EXPECT_EQ(Describe(Make(2, 5, 1, config::v1::SAME)), "2 2 2");
}

TEST(WindowTest, ValidPadsNothing) {
  EXPECT_EQ(Describe(Make(7, 3, 1, config::v1::VALID)), "5 0 0");
  EXPECT_EQ(Describe(Make(6, 3, 2, config::v1::VALID)), "2 0 0");
  EXPECT_EQ(Describe(Make(7, 7, 9, config::v1::VALID)), "1 0 0");
}

TEST(WindowTest, HalfPaddingIgnoresTheStride) {
  EXPECT_EQ(Describe(Make(7, 3, 1, config::v1::HALF)), "7 1 1");
  EXPECT_EQ(Describe(Make(6, 3, 2, config::v1::HALF)), "3 1 0");
  EXPECT_EQ(Describe(Make(8, 7, 2, config::v1::HALF)), "4 3 2");
  EXPECT_EQ(Describe(Make(5, 4, 1, config::v1::HALF)), "5 1 2");
  EXPECT_EQ(Describe(Make(1, 5, 3, config::v1::HALF)), "1 2 2");
}

// Makes the geometry of a window over [4, 7, 3]. Empty strides default to `otherwise`.
absl::StatusOr<WindowGeometry> MakeFrom(const std::vector<int64_t>& size, const std::vector<int64_t>& strides,
                                        int64_t otherwise = 1, const Shape& shape = {4, 7, 3},
                                        config::v1::Padding padding = config::v1::VALID) {
  config::v1::Layer layer;
  layer.set_name("x");
  v1::ModelSpec spec;
  const LayerBuilder builder(layer, absl::MakeConstSpan(&shape, 1), &spec);
  return MakeWindowGeometry(builder, {size.begin(), size.end()}, {strides.begin(), strides.end()}, otherwise, padding);
}

std::string Describe(const WindowGeometry& geometry) {
  const auto window = [](const SlidingWindow& w) { return absl::StrCat(w.size, "/", w.stride, " of ", w.input); };
  return absl::StrCat(window(geometry.y), ", ", window(geometry.x), ", ", geometry.channels);
}

TEST(WindowTest, HeightComesBeforeWidth) {
  EXPECT_EQ(Describe(*MakeFrom({2, 3}, {1, 2})), "2/1 of 4, 3/2 of 7, 3");
  EXPECT_EQ(Describe(*MakeFrom({2}, {3})), "2/3 of 4, 2/3 of 7, 3");
}

TEST(WindowTest, StridesMayBeLeftOut) {
  EXPECT_EQ(Describe(*MakeFrom({2, 3}, {}, 1)), "2/1 of 4, 3/1 of 7, 3");
  EXPECT_EQ(Describe(*MakeFrom({2, 3}, {}, 0)), "2/2 of 4, 3/3 of 7, 3");
}

TEST(WindowTest, AnImageWithoutChannelsHasOne) {
  EXPECT_EQ(Describe(*MakeFrom({2}, {1}, 1, {4, 7})), "2/1 of 4, 2/1 of 7, 1");
}

TEST(WindowTest, RefusesNumbersOutOfRange) {
  const auto message = [](const auto&... arguments) { return std::string(MakeFrom(arguments...).status().message()); };
  using Numbers = std::vector<int64_t>;
  EXPECT_THAT(message(Numbers{}, Numbers{}), HasSubstr("the window has 0 numbers"));
  EXPECT_THAT(message(Numbers{1, 1, 1}, Numbers{}), HasSubstr("the window has 3 numbers"));
  EXPECT_THAT(message(Numbers{2}, Numbers{1, 1, 1}), HasSubstr("strides has 3 numbers"));
  EXPECT_THAT(message(Numbers{0}, Numbers{}), HasSubstr("the window is 0"));
  EXPECT_THAT(message(Numbers{2}, Numbers{1, -1}), HasSubstr("strides is -1"));
  EXPECT_THAT(message(Numbers{2}, Numbers{(1 << 20) + 1}), HasSubstr("strides is 1048577"));
  EXPECT_EQ(message(Numbers{2}, Numbers{1 << 20}), "");
  EXPECT_THAT(message(Numbers{5, 1}, Numbers{}), HasSubstr("a window of height 5 does not fit an input of height 4"));
  EXPECT_THAT(message(Numbers{1, 8}, Numbers{}), HasSubstr("a window of width 8 does not fit an input of width 7"));
  EXPECT_THAT(message(Numbers{2}, Numbers{}, 1, Shape{4}), HasSubstr("not shape [4]"));
  EXPECT_THAT(message(Numbers{2}, Numbers{}, 1, Shape{4, 4, 4, 4}), HasSubstr("not shape [4,4,4,4]"));
  EXPECT_THAT(message(Numbers{2}, Numbers{}, 1, Shape{4, 4}, static_cast<config::v1::Padding>(7)),
              HasSubstr("no padding 7"));
}

}  // namespace
}  // namespace lockstep
