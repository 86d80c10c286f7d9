#include "lockstep/worker/nn/kernels/columns.h"

#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

TEST(ColumnsTest, StripsCoverEachColumnOnce) {
  for (int64_t columns = 0; columns <= 100; ++columns) {
    const std::vector<float> x = RandomFloats(columns, 1);
    ResultArray y(columns);
    int64_t vectors = 0;
    ForEachStrip(columns, [&](auto strip) {
      for (int v = 0; v < strip.kVectors; ++v, ++vectors) {
        EXPECT_EQ(strip.column + v * kLanes, vectors * kLanes);
        strip.Store(y.data(), v, strip.Load(x.data(), v) + Set8(1));
      }
    });
    EXPECT_EQ(vectors, (columns + kLanes - 1) / kLanes);
    for (int64_t i = 0; i < columns; ++i) ASSERT_EQ(y.values()[i], x[i] + 1) << i << " of " << columns;
    EXPECT_TRUE(y.borders_intact()) << columns;
  }
}

TEST(ColumnsTest, FourVectorsGoTogetherWhereTheyFit) {
  const auto vectors = [](int64_t columns) {
    std::vector<int> sizes;
    ForEachStrip(columns, [&](auto strip) { sizes.push_back(strip.kVectors); });
    return sizes;
  };
  EXPECT_EQ(vectors(32 + 32 + 8 + 8 + 3), (std::vector<int>{4, 4, 1, 1, 1}));
  EXPECT_EQ(vectors(32), (std::vector<int>{4}));
  EXPECT_EQ(vectors(31), (std::vector<int>{1, 1, 1, 1}));
}

TEST(ColumnsTest, LanesBeyondTheLastColumnAreZero) {
  const std::vector<float> x(16, 3.0f);
  ForEachStrip(5, [&](auto strip) {
    const F32x8 loaded = strip.Load(x.data(), 0);
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(loaded[i], i < 5 ? 3 : 0);
  });
}

}  // namespace
}  // namespace lockstep
