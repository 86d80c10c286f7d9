#ifndef LOCKSTEP_KERNELS_PRODUCTS_CONVOLUTION_H_
#define LOCKSTEP_KERNELS_PRODUCTS_CONVOLUTION_H_

#include <cstdint>

#include "lockstep/kernels/vectors/matrix.h"

namespace lockstep {

// Elements in memory: `runs` runs of `length` elements. Elements are `step` floats apart, and runs `run_stride` floats.
struct TileElements {
  int64_t runs = 1;
  int64_t length = 0;
  int64_t step = 1;
  int64_t run_stride = 0;
};

// A grid of `rows` x `columns` pixels. Pixel (y, x) begins at y * row_stride + x * column_stride.
struct PixelGrid {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

// Returns an upper bound, valid on every target, on the number of floats in one row of all panels together. It is at
// least `columns`.
inline int64_t PaddedColumns(int64_t columns) { return (columns + 31) / 32 * 32; }

// Packs the columns of b into the panels that the kernels below read on the current target. Writes at most b.rows *
// PaddedColumns(b.columns) floats.
void PackPanels(const Matrix& b, float* panels);
// Like PackPanels, but b holds only some rows of a matrix with `all_rows` rows, starting at row `first`.
void PackPanelRows(const Matrix& b, int64_t first, int64_t all_rows, float* panels);

// For each pixel of `from` and each column c of the packed matrix, computes the chain of fused multiply-adds of the
// pixel's patch with column c, in the order of the patch's elements, plus bias[c] unless `bias` is null. Writes the
// result to result[c] at the pixel's place in `to`, which must have as many pixels as `from`. `panels` must come from
// PackPanels for a matrix with `columns` columns.
void MultiplyPatches(const float* images, const PixelGrid& from, const TileElements& patch, const float* panels,
                     int64_t columns, const float* bias, float* result, const PixelGrid& to);

// Images and gradients whose outer products are summed.
struct KernelGradientInput {
  // Padded images, and the gradient of the outputs [images, height, width, columns].
  const float* images = nullptr;
  int64_t image_size = 0;
  const float* gradients = nullptr;
  int64_t count = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t columns = 0;
  // Distance in `images` between the patches of neighboring pixels.
  int64_t pixel_stride = 0;
  int64_t row_stride = 0;
  // The elements of one pixel's patch. `step` must be 1.
  TileElements patch;
};

// Returns the number of blocks of the kernel's gradient on the current target.
int64_t NumKernelGradientBlocks(const KernelGradientInput& input);

// Computes blocks [begin, end) of kernel_gradient [patch elements, columns] = the sum over all pixels of the outer
// product of the patch and the gradient. Pixels are summed in bands of at most 192, each a chain of fused
// multiply-adds, then the bands in order. A block's bits do not depend on which blocks are computed with it. The blocks
// of one call read the images only once.
void KernelGradientBlocks(const KernelGradientInput& input, int64_t begin, int64_t end, float* kernel_gradient);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_PRODUCTS_CONVOLUTION_H_
