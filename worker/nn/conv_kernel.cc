#include "worker/nn/conv_kernel.h"

namespace lockstep {
namespace {

// Rows of six patch elements in one block.
constexpr int64_t kBlockTiles = 16;
// Pixels in a band: what a tile reads of them fits the first-level cache.
constexpr int64_t kBandPixels = 192;

int64_t NumTiles(const KernelGradientInput& input) { return (input.patch.elements() + kTilePixels - 1) / kTilePixels; }
int64_t NumTileBlocks(const KernelGradientInput& input) { return (NumTiles(input) + kBlockTiles - 1) / kBlockTiles; }

// All ones in the lanes below `count`.
Int8 FirstLanes(int64_t count) {
  const Int8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return lane < static_cast<int32_t>(std::clamp<int64_t>(count, 0, kLanes));
}

// Loads 16 columns; those beyond the matrix are zero and not read.
struct FullPanel {
  explicit FullPanel(int64_t) {}
  Float8 Low(const float* p) const { return Load8(p); }
  Float8 High(const float* p) const { return Load8(p + kLanes); }
};
struct PartPanel {
  explicit PartPanel(int64_t count) : low(FirstLanes(count)), high(FirstLanes(count - kLanes)) {}
  Float8 Low(const float* p) const { return _mm256_maskload_ps(p, (__m256i)low); }
  Float8 High(const float* p) const { return _mm256_maskload_ps(p + kLanes, (__m256i)high); }
  Int8 low;
  Int8 high;
};

using TileSums = Float8[kTilePixels][2];

// total += the sum over rows [begin, end) of one image of x[offsets[r]] times the panel's gradients.
template <typename Panel>
void AddBand(const KernelGradientInput& input, const float* image, const float* gradients, int64_t begin, int64_t end,
             const int64_t* offsets, const Panel& panel, TileSums& total) {
  Float8 sums[kTilePixels][2] = {};
  for (int64_t y = begin; y < end; ++y) {
    const float* a[kTilePixels];
    for (int r = 0; r < kTilePixels; ++r) a[r] = image + y * input.row_stride + offsets[r];
    const float* g = gradients + y * input.width * input.columns;
    for (int64_t x = 0; x < input.width * input.pixel_stride; x += input.pixel_stride, g += input.columns) {
      const Float8 low = panel.Low(g);
      const Float8 high = panel.High(g);
#pragma GCC unroll 6
      for (int r = 0; r < kTilePixels; ++r) {
        const Float8 value = _mm256_broadcast_ss(a[r] + x);
        sums[r][0] = MultiplyAdd8(value, low, sums[r][0]);
        sums[r][1] = MultiplyAdd8(value, high, sums[r][1]);
      }
    }
  }
  for (int r = 0; r < kTilePixels; ++r) {
    total[r][0] += sums[r][0];
    total[r][1] += sums[r][1];
  }
}

template <typename Panel>
void ComputeBlock(const KernelGradientInput& input, int64_t first_tile, int64_t column, float* kernel_gradient) {
  const int64_t elements = input.patch.elements();
  const int64_t tiles = std::min(kBlockTiles, NumTiles(input) - first_tile);
  const Panel panel(input.columns - column);
  TileSums totals[kBlockTiles] = {};
  int64_t offsets[kBlockTiles * kTilePixels];
  for (int64_t i = 0; i < tiles * kTilePixels; ++i) {
    // Beyond the last element the last one is computed again, and not stored.
    const int64_t element = std::min(first_tile * kTilePixels + i, elements - 1);
    offsets[i] = element / input.patch.run * input.patch.row_stride + element % input.patch.run;
  }
  const int64_t band = std::max<int64_t>(1, kBandPixels / input.width);
  const int64_t gradient_size = input.height * input.width * input.columns;
  for (int64_t i = 0; i < input.count; ++i) {
    const float* image = input.images + i * input.image_size;
    const float* gradients = input.gradients + i * gradient_size + column;
    for (int64_t begin = 0; begin < input.height; begin += band) {
      const int64_t end = std::min(input.height, begin + band);
      for (int64_t tile = 0; tile < tiles; ++tile) {
        AddBand(input, image, gradients, begin, end, offsets + tile * kTilePixels, panel, totals[tile]);
      }
    }
  }
  for (int64_t i = 0; i < tiles * kTilePixels && first_tile * kTilePixels + i < elements; ++i) {
    const Float8* sums = totals[i / kTilePixels][i % kTilePixels];
    StorePanelRow(kernel_gradient + (first_tile * kTilePixels + i) * input.columns + column, input.columns - column,
                  sums[0], sums[1]);
  }
}

}  // namespace

void PackPanels(const float* matrix, int64_t rows, int64_t columns, float* panels) {
  for (int64_t column = 0; column < columns; column += kPanelColumns) {
    const int64_t count = std::min<int64_t>(kPanelColumns, columns - column);
    for (int64_t row = 0; row < rows; ++row, panels += kPanelColumns) {
      const float* from = matrix + row * columns + column;
      std::copy_n(from, count, panels);
      std::fill_n(panels + count, kPanelColumns - count, 0.0f);
    }
  }
}

int64_t NumKernelGradientBlocks(const KernelGradientInput& input) {
  return NumPanels(input.columns) * NumTileBlocks(input);
}

void KernelGradientBlock(const KernelGradientInput& input, int64_t block, float* kernel_gradient) {
  const int64_t first_tile = block % NumTileBlocks(input) * kBlockTiles;
  const int64_t column = block / NumTileBlocks(input) * kPanelColumns;
  if (input.columns - column >= kPanelColumns) {
    ComputeBlock<FullPanel>(input, first_tile, column, kernel_gradient);
  } else {
    ComputeBlock<PartPanel>(input, first_tile, column, kernel_gradient);
  }
}

}  // namespace lockstep
