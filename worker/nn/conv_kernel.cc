#include "worker/nn/conv_kernel.h"

namespace lockstep {
namespace {

// Groups of six patch elements in one block.
constexpr int64_t kBlockTiles = 16;
// Most pixels in a band: what a tile reads of them fits the first-level cache.
constexpr int64_t kBandPixels = 192;

int64_t NumTiles(const KernelGradientInput& input) { return (input.patch.elements() + kTilePixels - 1) / kTilePixels; }
int64_t NumTileBlocks(const KernelGradientInput& input) { return (NumTiles(input) + kBlockTiles - 1) / kBlockTiles; }

using TileSums = Float8[kTilePixels][2];

// A rectangle of output pixels of one image.
struct Band {
  int64_t y_begin;
  int64_t y_end;
  int64_t x_begin;
  int64_t x_end;
};

// Calls body(band) for bands that cover the output, each at most kBandPixels pixels.
template <typename Body>
void ForEachBand(int64_t height, int64_t width, Body body) {
  const int64_t columns = std::min(width, kBandPixels);
  const int64_t rows = kBandPixels / columns;
  for (int64_t y = 0; y < height; y += rows) {
    for (int64_t x = 0; x < width; x += columns) {
      body(Band{y, std::min(height, y + rows), x, std::min(width, x + columns)});
    }
  }
}

// Sixteen columns of the band's gradients, next to each other: [pixels, 16], zeros beyond the last column. In
// place they would be a power of two apart and push one another out of the cache.
void PackGradients(const KernelGradientInput& input, const float* gradients, const Band& band, int64_t column,
                   float* packed) {
  const int64_t count = std::min<int64_t>(kPanelColumns, input.columns - column);
  for (int64_t y = band.y_begin; y < band.y_end; ++y) {
    const float* from = gradients + (y * input.width + band.x_begin) * input.columns + column;
    for (int64_t x = band.x_begin; x < band.x_end; ++x, from += input.columns, packed += kPanelColumns) {
      if (count == kPanelColumns) {
        Store8(packed, Load8(from));
        Store8(packed + kLanes, Load8(from + kLanes));
      } else {
        std::copy_n(from, count, packed);
        std::fill_n(packed + count, kPanelColumns - count, 0.0f);
      }
    }
  }
}

// total += the sum over the band's pixels of x[offsets[r]] times the packed gradients.
void AddBand(const KernelGradientInput& input, const float* image, const float* packed, const Band& band,
             const int64_t* offsets, TileSums& total) {
  Float8 sums[kTilePixels][2] = {};
  for (int64_t y = band.y_begin; y < band.y_end; ++y) {
    const float* row = image + y * input.row_stride + band.x_begin * input.pixel_stride;
    const float* a[kTilePixels];
    for (int r = 0; r < kTilePixels; ++r) a[r] = row + offsets[r];
    const int64_t step = input.pixel_stride;
    const int64_t end = (band.x_end - band.x_begin) * step;
    for (int64_t x = 0; x < end; x += step, packed += kPanelColumns) {
      const Float8 low = _mm256_load_ps(packed);
      const Float8 high = _mm256_load_ps(packed + kLanes);
#pragma GCC unroll 6
      for (int r = 0; r < kTilePixels; ++r) {
        const Float8 value = _mm256_broadcast_ss(a[r] + x);
        sums[r][0] = MultiplyAdd8(value, low, sums[r][0]);
        sums[r][1] = MultiplyAdd8(value, high, sums[r][1]);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kTilePixels; ++r) {
    total[r][0] += sums[r][0];
    total[r][1] += sums[r][1];
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
  const int64_t elements = input.patch.elements();
  const int64_t first_tile = block % NumTileBlocks(input) * kBlockTiles;
  const int64_t column = block / NumTileBlocks(input) * kPanelColumns;
  const int64_t tiles = std::min(kBlockTiles, NumTiles(input) - first_tile);
  TileSums totals[kBlockTiles] = {};
  int64_t offsets[kBlockTiles * kTilePixels];
  for (int64_t i = 0; i < tiles * kTilePixels; ++i) {
    // Beyond the last element the last one is computed again, and not stored.
    const int64_t element = std::min(first_tile * kTilePixels + i, elements - 1);
    offsets[i] = element / input.patch.run * input.patch.row_stride + element % input.patch.run;
  }
  alignas(32) float packed[kBandPixels * kPanelColumns];
  for (int64_t i = 0; i < input.count; ++i) {
    const float* image = input.images + i * input.image_size;
    const float* gradients = input.gradients + i * input.height * input.width * input.columns;
    ForEachBand(input.height, input.width, [&](const Band& band) {
      PackGradients(input, gradients, band, column, packed);
      for (int64_t tile = 0; tile < tiles; ++tile) {
        AddBand(input, image, packed, band, offsets + tile * kTilePixels, totals[tile]);
      }
    });
  }
  for (int64_t i = 0; i < tiles * kTilePixels && first_tile * kTilePixels + i < elements; ++i) {
    const Float8* sums = totals[i / kTilePixels][i % kTilePixels];
    StorePanelRow(kernel_gradient + (first_tile * kTilePixels + i) * input.columns + column, input.columns - column,
                  sums[0], sums[1]);
  }
}

}  // namespace lockstep
