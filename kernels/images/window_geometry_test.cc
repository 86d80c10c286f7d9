#include "lockstep/kernels/images/window_geometry.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(WindowGeometryTest, PaddedWindowsBeginBeforeTheInput) {
  const SlidingWindow window{7, 3, 2, 1, 4};
  EXPECT_EQ(window.first(0), -1);
  EXPECT_EQ(window.first(3), 5);
  EXPECT_EQ(window.span(), 9);
}

TEST(WindowGeometryTest, TheSpanCoversAllWindows) {
  EXPECT_EQ((SlidingWindow{5, 5, 1, 0, 1}).span(), 5);
  EXPECT_EQ((SlidingWindow{9, 2, 4, 0, 2}).span(), 6);
}

}  // namespace
}  // namespace lockstep
