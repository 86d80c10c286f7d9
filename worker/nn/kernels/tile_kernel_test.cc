#include "lockstep/worker/nn/kernels/tile_kernel.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/worker/nn/testing/float_arrays.h"

namespace lockstep {
namespace {

// The tile of `Rows` rows against one chain of fused multiply-adds for each sum, bit for bit.
template <int Rows>
void ExpectTile(const TileElements& elements, int64_t panel_stride) {
  const int64_t count = elements.runs * elements.length;
  const std::vector<float> panel = RandomFloats((count + 1) * panel_stride, 1);
  const int64_t row_size = elements.runs * elements.run_stride + elements.length * elements.step;
  const std::vector<float> values = RandomFloats(Rows * row_size, 2);
  const float* rows[Rows];
  // Not in the order of memory, so that a row that is read for another shows.
  for (int r = 0; r < Rows; ++r) rows[r] = values.data() + (r * 5 + 3) % Rows * row_size;
  int stored = 0;
  MultiplyTile<Rows>(elements, rows, panel.data(), panel_stride, [&](int r, F32x8 low, F32x8 high) {
    EXPECT_EQ(r, stored++);
    for (int c = 0; c < kTileColumns; ++c) {
      float sum = 0;
      for (int64_t e = 0; e < count; ++e) {
        const int64_t run = e / elements.length;
        const float x = rows[r][run * elements.run_stride + e % elements.length * elements.step];
        sum = std::fma(x, panel[e * panel_stride + c], sum);
      }
      ASSERT_EQ(c < kLanes ? low[c] : high[c - kLanes], sum) << "row " << r << " column " << c;
    }
  });
  EXPECT_EQ(stored, Rows);
}

TEST(TileKernelTest, EachSumIsOneChainInTheOrderOfTheElements) {
  for (const int64_t length : {1, 2, 7, 100}) {
    ExpectTile<kTileRows>({1, length, 1, 0}, kTileColumns);
    ExpectTile<4>({1, length, 1, 0}, kTileColumns);
    ExpectTile<2>({1, length, 1, 0}, kTileColumns);
    ExpectTile<1>({1, length, 1, 0}, kTileColumns);
  }
}

TEST(TileKernelTest, ElementsMayStandApart) { ExpectTile<kTileRows>({1, 9, 6, 0}, kTileColumns); }

TEST(TileKernelTest, RunsFollowOneAnotherInThePanel) {
  ExpectTile<kTileRows>({3, 5, 1, 11}, kTileColumns);
  ExpectTile<kTileRows>({4, 3, 2, 7}, kTileColumns);
  ExpectTile<2>({5, 1, 1, 1}, kTileColumns);
}

TEST(TileKernelTest, ThePanelsRowsMayStandApart) { ExpectTile<kTileRows>({2, 6, 1, 6}, 37); }

TEST(TileKernelTest, NoElementsSumToZero) {
  const float* const rows[kTileRows] = {};
  MultiplyTile({1, 0, 1, 0}, rows, nullptr, kTileColumns, [&](int, F32x8 low, F32x8 high) {
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(low[i] + high[i], 0);
  });
}

TEST(TileKernelTest, ANotANumberStaysInItsRow) {
  std::vector<float> values(kTileRows, 1.0f);
  values[4] = std::numeric_limits<float>::quiet_NaN();
  const float* rows[kTileRows];
  for (int r = 0; r < kTileRows; ++r) rows[r] = &values[r];
  const std::vector<float> panel(kTileColumns, 2.0f);
  MultiplyTile({1, 1, 1, 0}, rows, panel.data(), kTileColumns, [&](int r, F32x8 low, F32x8 high) {
    for (int i = 0; i < kLanes; ++i) {
      EXPECT_EQ(std::isnan(low[i]), r == 4);
      EXPECT_EQ(std::isnan(high[i]), r == 4);
    }
  });
}

const F32x8 kLow = {1, 2, 3, 4, 5, 6, 7, 8};
const F32x8 kHigh = {9, 10, 11, 12, 13, 14, 15, 16};

TEST(TileKernelTest, StoresTheFirstColumnsAlone) {
  for (int64_t count = 1; count <= 20; ++count) {
    ResultArray stored(std::min<int64_t>(count, kTileColumns));
    StoreColumns(stored.data(), count, kLow, kHigh);
    for (size_t i = 0; i < stored.values().size(); ++i) EXPECT_EQ(stored.values()[i], i + 1) << count;
    EXPECT_TRUE(stored.borders_intact()) << count;
  }
}

TEST(TileKernelTest, AddsToTheFirstColumnsAlone) {
  for (int64_t count = 1; count <= 20; ++count) {
    ResultArray sums(std::min<int64_t>(count, kTileColumns));
    for (size_t i = 0; i < sums.values().size(); ++i) sums.values()[i] = static_cast<float>(100 * i);
    AddColumns(sums.data(), count, kLow, kHigh);
    for (size_t i = 0; i < sums.values().size(); ++i) EXPECT_EQ(sums.values()[i], 101 * i + 1) << count;
    EXPECT_TRUE(sums.borders_intact()) << count;
  }
}

TEST(TileKernelTest, PanelsCoverAllColumns) {
  EXPECT_EQ(NumPanels(1), 1);
  EXPECT_EQ(NumPanels(16), 1);
  EXPECT_EQ(NumPanels(17), 2);
  EXPECT_EQ(NumPanels(48), 3);
}

}  // namespace
}  // namespace lockstep
