#include "lockstep/kernels/products/convolution.h"

#include <algorithm>
#include <vector>

#include "lockstep/kernels/vectors/scratch.h"
#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/products/convolution.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/panel-inl.h"
#include "lockstep/kernels/vectors/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// Number of tiles of patch elements in one block of the kernel's gradient.
constexpr int64_t kBlockTiles = 16;
// Maximum number of pixels in a band. The part of a band that a tile reads fits into the first-level cache. Changing it
// changes the low-order bits of the results.
constexpr int64_t kBandPixels = 192;

void PackOnTarget(const Matrix& b, int64_t first, int64_t all_rows, float* panels) {
  PackPanelsOf(b, 0, b.rows, 0, b.columns, all_rows * kPanelColumns, panels + first * kPanelColumns);
}

// Consecutive pixels of one row whose patches form a tile. The results for pixel r go to result + r * result_stride.
struct PatchTile {
  TileRows patches;
  float* result;
  int64_t result_stride;
};

// Adds the bias to a tile's sums and stores `columns` columns of row r at to(r).
template <int kRows, int kVectors, class To>
HWY_INLINE void StorePatchTile(FloatVector (&sums)[kRows][kVectors], const float* bias, int64_t columns, To to) {
  const Floats d;
  if (bias != nullptr) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const FloatVector added = LoadUpTo(d, bias + v * kFloatLanes, columns - v * kFloatLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) sums[r][v] = hn::Add(sums[r][v], added);
    }
  }
  const bool whole = columns >= kVectors * kFloatLanes;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* const p = to(r) + v * kFloatLanes;
      if (whole) {
        hn::StoreU(sums[r][v], d, p);
      } else {
        StoreUpTo(sums[r][v], d, p, columns - v * kFloatLanes);
      }
    }
  }
}

// Computes `columns` columns of the results from a panel and its bias.
template <int kRows, int kVectors, bool kAdjacent>
HWY_NOINLINE void MultiplyPatchTile(const TileElements& patch, const PatchTile& tile, const float* panel,
                                    const float* bias, int64_t columns) {
  FloatVector sums[kRows][kVectors];
  SumRuns<kRows, kVectors, kAdjacent>(patch.runs, patch.run_stride, patch.length, tile.patches, panel, sums);
  StorePatchTile(sums, bias, columns, [&](int r) HWY_ATTR { return tile.result + r * tile.result_stride; });
}

template <int kVectors, bool kAdjacent, int kRows = kMostTileRows>
HWY_INLINE void MultiplyPatchRows(int64_t count, const TileElements& patch, const PatchTile& tile, const float* panel,
                                  const float* bias, int64_t columns) {
  if constexpr (kRows > 0) {
    if (count == kRows) return MultiplyPatchTile<kRows, kVectors, kAdjacent>(patch, tile, panel, bias, columns);
    MultiplyPatchRows<kVectors, kAdjacent, kRows - 1>(count, patch, tile, panel, bias, columns);
  }
}

// Pixels at arbitrary addresses, and the addresses of their results.
struct ScatteredTile {
  const float* from[kMostTileRows];
  float* to[kMostTileRows];
};

template <int kRows, int kVectors>
HWY_NOINLINE void MultiplyScatteredTile(const TileElements& patch, const ScatteredTile& tile, const float* panel,
                                        const float* bias, int64_t columns) {
  FloatVector sums[kRows][kVectors];
  SumScatteredRuns<kRows, kVectors>(patch.runs, patch.run_stride, patch.length, 1, tile.from, panel, sums);
  StorePatchTile(sums, bias, columns, [&](int r) HWY_ATTR { return tile.to[r]; });
}

template <int kVectors, int kRows = kMostTileRows>
HWY_INLINE void MultiplyScatteredRows(int64_t count, const TileElements& patch, const ScatteredTile& tile,
                                      const float* panel, const float* bias, int64_t columns) {
  if constexpr (kRows > 0) {
    if (count == kRows) return MultiplyScatteredTile<kRows, kVectors>(patch, tile, panel, bias, columns);
    MultiplyScatteredRows<kVectors, kRows - 1>(count, patch, tile, panel, bias, columns);
  }
}

// Computes the columns of one panel in tiles that continue from row to row. These tiles are full, but need a pointer
// for each pixel.
template <int kVectors>
void MultiplyScatteredPanel(const float* images, const PixelGrid& from, const TileElements& patch, const float* panel,
                            const float* bias, int64_t columns, float* result, const PixelGrid& to) {
  const RowTiles tiles(from.rows * from.columns);
  int64_t y = 0;
  int64_t x = 0;
  for (int64_t i = 0; i < tiles.count; ++i) {
    ScatteredTile tile;
    for (int64_t r = 0; r < tiles.size(i); ++r) {
      tile.from[r] = images + y * from.row_stride + x * from.column_stride;
      tile.to[r] = result + y * to.row_stride + x * to.column_stride;
      if (++x == from.columns) x = 0, ++y;
    }
    MultiplyScatteredRows<kVectors>(tiles.size(i), patch, tile, panel, bias, columns);
  }
}

// Returns true if tiles within a row of pixels would be so small that the multiply-adds would wait for each other, and
// the target's tiles have so few rows that the pointers fit into registers.
bool ScattersTiles(const PixelGrid& from) { return kMostTileRows <= 6 && RowTiles(from.columns).least < 5; }

// Computes the columns of one panel.
template <int kVectors, bool kAdjacent>
void MultiplyPatchPanel(const float* images, const PixelGrid& from, const TileElements& patch, const float* panel,
                        const float* bias, int64_t columns, float* result, const PixelGrid& to) {
  const RowTiles tiles(from.columns);
  for (int64_t y = 0; y < from.rows; ++y) {
    for (int64_t i = 0; i < tiles.count; ++i) {
      const int64_t x = tiles.begin(i);
      const TileRows patches{images + y * from.row_stride + x * from.column_stride, from.column_stride, 1};
      float* const p = result + y * to.row_stride + x * to.column_stride;
      MultiplyPatchRows<kVectors, kAdjacent>(tiles.size(i), patch, {patches, p, to.column_stride}, panel, bias,
                                             columns);
    }
  }
}

void PatchesOnTarget(const float* images, const PixelGrid& from, const TileElements& patch, const float* panels,
                     int64_t columns, const float* bias, float* result, const PixelGrid& to) {
  const int64_t panel_size = patch.runs * patch.length * kPanelColumns;
  const bool adjacent = from.column_stride == 1;
  for (int64_t column = 0; column < columns; column += kPanelColumns, panels += panel_size) {
    const float* const panel_bias = bias == nullptr ? nullptr : bias + column;
    const int64_t count = columns - column;
    if (ScattersTiles(from)) {
      const auto scattered = count > kFloatLanes ? &MultiplyScatteredPanel<2> : &MultiplyScatteredPanel<1>;
      scattered(images, from, patch, panels, panel_bias, count, result + column, to);
      continue;
    }
    const auto multiply = count > kFloatLanes
                              ? (adjacent ? &MultiplyPatchPanel<2, true> : &MultiplyPatchPanel<2, false>)
                              : (adjacent ? &MultiplyPatchPanel<1, true> : &MultiplyPatchPanel<1, false>);
    multiply(images, from, patch, panels, panel_bias, count, result + column, to);
  }
}

// A rectangle of output pixels in one image.
struct Band {
  int64_t y_begin;
  int64_t y_end;
  int64_t x_begin;
  int64_t x_end;
};

// Calls body(band) for bands that cover the output, each of at most kBandPixels pixels.
template <typename Body>
HWY_INLINE void ForEachBand(int64_t height, int64_t width, Body body) {
  const int64_t columns = std::min(width, kBandPixels);
  const int64_t rows = kBandPixels / columns;
  for (int64_t y = 0; y < height; y += rows) {
    for (int64_t x = 0; x < width; x += columns) {
      body(Band{y, std::min(height, y + rows), x, std::min(width, x + columns)});
    }
  }
}

// Packs one panel of the band's gradients: [pixels][kPanelColumns], with zeros beyond the last column. Unpacked
// gradients would be a power of two apart and evict each other from the cache.
void PackGradients(const KernelGradientInput& input, const float* gradients, const Band& band, int64_t column,
                   float* packed) {
  const Floats d;
  const int64_t count = input.columns - column;
  for (int64_t y = band.y_begin; y < band.y_end; ++y) {
    const float* from = gradients + (y * input.width + band.x_begin) * input.columns + column;
    for (int64_t x = band.x_begin; x < band.x_end; ++x, from += input.columns, packed += kPanelColumns) {
      hn::Store(LoadUpTo(d, from, count), d, packed);
      hn::Store(LoadUpTo(d, from + kFloatLanes, count - kFloatLanes), d, packed + kFloatLanes);
    }
  }
}

// totals[r] += the sum over `pixels` of the image at offsets[r] times the packed gradients. A row of totals is
// kPanelColumns long. If kAdjacent, each offset is the previous one plus 1.
template <int kRows, int kVectors, bool kAdjacent>
HWY_NOINLINE void AddOuterProducts(const TileElements& pixels, const float* image, const int64_t* offsets,
                                   const float* packed, float* totals) {
  const Floats d;
  FloatVector sums[kRows][kVectors];
  if constexpr (kAdjacent) {
    SumRuns<kRows, kVectors, true>(pixels.runs, pixels.run_stride, pixels.length, {image + offsets[0], 1, pixels.step},
                                   packed, sums);
  } else {
    const float* rows[kRows];
    for (int r = 0; r < kRows; ++r) rows[r] = image + offsets[r];
    SumScatteredRuns<kRows, kVectors>(pixels.runs, pixels.run_stride, pixels.length, pixels.step, rows, packed, sums);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* const p = totals + r * kPanelColumns + v * kFloatLanes;
      hn::Store(hn::Add(hn::Load(d, p), sums[r][v]), d, p);
    }
  }
}

template <int kVectors, bool kAdjacent, int kRows = kMostTileRows>
HWY_INLINE void AddOuterProductRows(int64_t count, const TileElements& pixels, const float* image,
                                    const int64_t* offsets, const float* packed, float* totals) {
  if constexpr (kRows > 0) {
    if (count == kRows) {
      return AddOuterProducts<kRows, kVectors, kAdjacent>(pixels, image, offsets, packed, totals);
    }
    AddOuterProductRows<kVectors, kAdjacent, kRows - 1>(count, pixels, image, offsets, packed, totals);
  }
}

// The tiles of a patch's elements. If the patch's runs are long, each tile stays within a run, so that its elements are
// adjacent. Otherwise all elements are tiled together.
struct PatchTiles {
  explicit PatchTiles(const TileElements& patch)
      : adjacent(patch.length > kMostTileRows / 2),
        runs(adjacent ? patch.runs : 1),
        length(adjacent ? patch.length : patch.runs * patch.length),
        tiles(length) {}
  int64_t count() const { return runs * tiles.count; }
  int64_t begin(int64_t i) const { return i / tiles.count * length + tiles.begin(i % tiles.count); }

  bool adjacent;
  int64_t runs;
  int64_t length;
  // The tiles of one run.
  RowTiles tiles;
};

// The gradient of some patch elements for the columns of one panel.
class GradientBlock {
 public:
  // Number of floats in a block's sums.
  static constexpr int64_t kTotals = kBlockTiles * kMostTileRows * kPanelColumns;

  // `totals` points to kTotals floats, which only this block uses.
  GradientBlock(const KernelGradientInput& input, const PatchTiles& all_tiles, int64_t block, float* totals)
      : input_(input), all_tiles_(all_tiles), totals_(totals) {
    const int64_t tile_blocks = (all_tiles_.count() + kBlockTiles - 1) / kBlockTiles;
    first_tile_ = block % tile_blocks * kBlockTiles;
    tiles_ = std::min(kBlockTiles, all_tiles_.count() - first_tile_);
    column_ = block / tile_blocks * kPanelColumns;
    const int64_t first = all_tiles_.begin(first_tile_);
    elements_ = all_tiles_.begin(first_tile_ + tiles_) - first;
    for (int64_t i = 0; i < elements_; ++i) {
      offsets_[i] = (first + i) / input.patch.length * input.patch.run_stride + (first + i) % input.patch.length;
    }
    std::fill_n(totals_, elements_ * kPanelColumns, 0.0f);
  }

  int64_t column() const { return column_; }

  // `packed` holds the band's gradients for the panel that begins at column().
  void AddBand(const float* image, const Band& band, const float* packed) {
    const bool wide = input_.columns - column_ > kFloatLanes;
    if (all_tiles_.adjacent) {
      wide ? AddTiles<2, true>(image, band, packed) : AddTiles<1, true>(image, band, packed);
    } else {
      wide ? AddTiles<2, false>(image, band, packed) : AddTiles<1, false>(image, band, packed);
    }
  }

  void Store(float* kernel_gradient) const {
    const Floats d;
    const int64_t count = input_.columns - column_;
    float* to = kernel_gradient + all_tiles_.begin(first_tile_) * input_.columns + column_;
    for (int64_t i = 0; i < elements_; ++i, to += input_.columns) {
      const float* const total = totals_ + i * kPanelColumns;
      StoreUpTo(hn::Load(d, total), d, to, count);
      StoreUpTo(hn::Load(d, total + kFloatLanes), d, to + kFloatLanes, count - kFloatLanes);
    }
  }

 private:
  template <int kVectors, bool kAdjacent>
  void AddTiles(const float* image, const Band& band, const float* packed) {
    image += band.y_begin * input_.row_stride + band.x_begin * input_.pixel_stride;
    const TileElements pixels{band.y_end - band.y_begin, band.x_end - band.x_begin, input_.pixel_stride,
                              input_.row_stride};
    int64_t at = 0;
    for (int64_t tile = first_tile_; tile < first_tile_ + tiles_; ++tile) {
      const int64_t size = all_tiles_.begin(tile + 1) - all_tiles_.begin(tile);
      AddOuterProductRows<kVectors, kAdjacent>(size, pixels, image, offsets_ + at, packed,
                                               totals_ + at * kPanelColumns);
      at += size;
    }
  }

  const KernelGradientInput& input_;
  const PatchTiles& all_tiles_;
  int64_t first_tile_;
  int64_t tiles_;
  int64_t column_;
  int64_t elements_;
  int64_t offsets_[kBlockTiles * kMostTileRows];
  // [elements][kPanelColumns]
  float* totals_;
};

// Number of blocks whose sums fit in an eighth of a second-level cache of 1 MB.
constexpr int64_t kGroupBlocks = (128 << 10) / (GradientBlock::kTotals * static_cast<int64_t>(sizeof(float)));

int64_t BlocksOnTarget(const KernelGradientInput& input) {
  const PatchTiles tiles(input.patch);
  return (tiles.count() + kBlockTiles - 1) / kBlockTiles * ((input.columns + kPanelColumns - 1) / kPanelColumns);
}

// Computes blocks that share one pass over the images.
void GroupOnTarget(const KernelGradientInput& input, int64_t begin, int64_t end, float* kernel_gradient) {
  thread_local Scratch scratch;
  float* const packed = scratch.Get(kBandPixels * kPanelColumns + (end - begin) * GradientBlock::kTotals);
  float* totals = packed + kBandPixels * kPanelColumns;
  const PatchTiles tiles(input.patch);
  std::vector<GradientBlock> blocks;
  blocks.reserve(end - begin);
  for (int64_t block = begin; block < end; ++block, totals += GradientBlock::kTotals) {
    blocks.emplace_back(input, tiles, block, totals);
  }
  const int64_t gradient_size = input.height * input.width * input.columns;
  for (int64_t i = 0; i < input.count; ++i) {
    ForEachBand(input.height, input.width, [&](const Band& band) HWY_ATTR {
      int64_t packed_column = -1;
      for (GradientBlock& block : blocks) {
        if (block.column() != packed_column) {
          packed_column = block.column();
          PackGradients(input, input.gradients + i * gradient_size, band, packed_column, packed);
        }
        block.AddBand(input.images + i * input.image_size, band, packed);
      }
    });
  }
  for (const GradientBlock& block : blocks) block.Store(kernel_gradient);
}

void RangeOnTarget(const KernelGradientInput& input, int64_t begin, int64_t end, float* kernel_gradient) {
  for (; begin < end; begin += kGroupBlocks) {
    GroupOnTarget(input, begin, std::min(begin + kGroupBlocks, end), kernel_gradient);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(PackOnTarget);
HWY_EXPORT(PatchesOnTarget);
HWY_EXPORT(BlocksOnTarget);
HWY_EXPORT(RangeOnTarget);

void PackPanels(const Matrix& b, float* panels) { PackPanelRows(b, 0, b.rows, panels); }

void PackPanelRows(const Matrix& b, int64_t first, int64_t all_rows, float* panels) {
  HWY_DYNAMIC_DISPATCH(PackOnTarget)(b, first, all_rows, panels);
}

void MultiplyPatches(const float* images, const PixelGrid& from, const TileElements& patch, const float* panels,
                     int64_t columns, const float* bias, float* result, const PixelGrid& to) {
  HWY_DYNAMIC_DISPATCH(PatchesOnTarget)(images, from, patch, panels, columns, bias, result, to);
}

int64_t NumKernelGradientBlocks(const KernelGradientInput& input) {
  return HWY_DYNAMIC_DISPATCH(BlocksOnTarget)(input);
}

void KernelGradientBlocks(const KernelGradientInput& input, int64_t begin, int64_t end, float* kernel_gradient) {
  HWY_DYNAMIC_DISPATCH(RangeOnTarget)(input, begin, end, kernel_gradient);
}

}  // namespace lockstep
#endif  // HWY_ONCE
