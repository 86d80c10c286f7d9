#include "lockstep/worker/nn/kernels/conv_kernel.h"

#include <algorithm>

namespace lockstep {
namespace {

// Groups of six patch elements in one block.
constexpr int64_t kBlockTiles = 16;
// Most pixels in a band: what a tile reads of them fits the first-level cache.
constexpr int64_t kBandPixels = 192;

int64_t PatchSize(const KernelGradientInput& input) { return input.patch.runs * input.patch.length; }

int64_t NumTiles(const KernelGradientInput& input) { return (PatchSize(input) + kTileRows - 1) / kTileRows; }
int64_t NumTileBlocks(const KernelGradientInput& input) { return (NumTiles(input) + kBlockTiles - 1) / kBlockTiles; }

using TileSums = F32x8[kTileRows][2];

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
  const int64_t count = std::min<int64_t>(kTileColumns, input.columns - column);
  for (int64_t y = band.y_begin; y < band.y_end; ++y) {
    const float* from = gradients + (y * input.width + band.x_begin) * input.columns + column;
    for (int64_t x = band.x_begin; x < band.x_end; ++x, from += input.columns, packed += kTileColumns) {
      if (count == kTileColumns) {
        Store8(packed, Load8(from));
        Store8(packed + kLanes, Load8(from + kLanes));
      } else {
        std::copy_n(from, count, packed);
        std::fill_n(packed + count, kTileColumns - count, 0.0f);
      }
    }
  }
}

// total += the sum over the band's pixels of x[offsets[r]] times the packed gradients.
void AddBand(const KernelGradientInput& input, const float* image, const float* packed, const Band& band,
             const int64_t* offsets, TileSums& total) {
  const float* first = image + band.y_begin * input.row_stride + band.x_begin * input.pixel_stride;
  const float* rows[kTileRows];
  for (int r = 0; r < kTileRows; ++r) rows[r] = first + offsets[r];
  const TileElements pixels{band.y_end - band.y_begin, band.x_end - band.x_begin, input.pixel_stride, input.row_stride};
  MultiplyTile(pixels, rows, packed, kTileColumns, [&](int r, F32x8 low, F32x8 high) {
    total[r][0] += low;
    total[r][1] += high;
  });
}

}  // namespace

int64_t NumKernelGradientBlocks(const KernelGradientInput& input) {
  return NumPanels(input.columns) * NumTileBlocks(input);
}

void KernelGradientBlock(const KernelGradientInput& input, int64_t block, float* kernel_gradient) {
  const int64_t elements = PatchSize(input);
  const int64_t first_tile = block % NumTileBlocks(input) * kBlockTiles;
  const int64_t column = block / NumTileBlocks(input) * kTileColumns;
  const int64_t tiles = std::min(kBlockTiles, NumTiles(input) - first_tile);
  TileSums totals[kBlockTiles] = {};
  int64_t offsets[kBlockTiles * kTileRows];
  for (int64_t i = 0; i < tiles * kTileRows; ++i) {
    // Beyond the last element the last one is computed again, and not stored.
    const int64_t element = std::min(first_tile * kTileRows + i, elements - 1);
    offsets[i] = element / input.patch.length * input.patch.run_stride + element % input.patch.length;
  }
  alignas(32) float packed[kBandPixels * kTileColumns];
  for (int64_t i = 0; i < input.count; ++i) {
    const float* image = input.images + i * input.image_size;
    const float* gradients = input.gradients + i * input.height * input.width * input.columns;
    ForEachBand(input.height, input.width, [&](const Band& band) {
      PackGradients(input, gradients, band, column, packed);
      for (int64_t tile = 0; tile < tiles; ++tile) {
        AddBand(input, image, packed, band, offsets + tile * kTileRows, totals[tile]);
      }
    });
  }
  for (int64_t i = 0; i < tiles * kTileRows && first_tile * kTileRows + i < elements; ++i) {
    const F32x8* sums = totals[i / kTileRows][i % kTileRows];
    StoreColumns(kernel_gradient + (first_tile * kTileRows + i) * input.columns + column, input.columns - column,
                 sums[0], sums[1]);
  }
}

}  // namespace lockstep
