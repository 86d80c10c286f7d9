#ifndef LOCKSTEP_WORKER_NN_CONV_KERNEL_H_
#define LOCKSTEP_WORKER_NN_CONV_KERNEL_H_

#include <algorithm>
#include <cstdint>

#include "worker/nn/simd.h"

// The inner loops of convolution: no copy of the patches is made (no "im2col"); the patches of a few pixels are read
// where they are. Every result is one chain of fused multiply-adds in the order of the patch's elements, whatever the
// neighbours are, so the bits depend on nothing but the values.
namespace lockstep {

// Pixels and columns (output channels) that are computed together: 6 x 16 sums fill 12 of 16 vector registers.
inline constexpr int kTilePixels = 6;
inline constexpr int kPanelColumns = 2 * kLanes;

inline int64_t NumPanels(int64_t columns) { return (columns + kPanelColumns - 1) / kPanelColumns; }

// What one output pixel reads: `rows` runs of `run` adjacent elements, `row_stride` apart.
struct Patch {
  int64_t rows = 0;
  int64_t run = 0;
  int64_t row_stride = 0;
  int64_t elements() const { return rows * run; }
};

// For r < 6: sums = the patch at pixels[r] times the panel [patch elements, 16]; calls store(r, columns 0-7, 8-15).
template <typename Store>
inline void MultiplyPatches(const Patch& patch, const float* const* pixels, const float* panel, Store store) {
  Float8 sums[kTilePixels][2] = {};
  for (int64_t row = 0; row < patch.rows; ++row) {
    const float* a[kTilePixels];
    for (int r = 0; r < kTilePixels; ++r) a[r] = pixels[r] + row * patch.row_stride;
    for (int64_t k = 0; k < patch.run; ++k, panel += kPanelColumns) {
      const Float8 low = _mm256_load_ps(panel);
      const Float8 high = _mm256_load_ps(panel + kLanes);
#pragma GCC unroll 6
      for (int r = 0; r < kTilePixels; ++r) {
        const Float8 x = _mm256_broadcast_ss(a[r] + k);
        sums[r][0] = MultiplyAdd8(x, low, sums[r][0]);
        sums[r][1] = MultiplyAdd8(x, high, sums[r][1]);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kTilePixels; ++r) store(r, sums[r][0], sums[r][1]);
}

// The first `count` columns of a panel's row in memory.
inline void StorePanelRow(float* p, int64_t count, Float8 low, Float8 high) {
  if (count >= kPanelColumns) {
    Store8(p, low);
    Store8(p + kLanes, high);
  } else if (count >= kLanes) {
    Store8(p, low);
    if (count > kLanes) StorePart8(p + kLanes, count - kLanes, high);
  } else {
    StorePart8(p, count, low);
  }
}

// Panels of a row-major matrix [rows, columns]: [NumPanels(columns)][rows][16], zeros beyond the last column.
// panels: aligned; NumPanels(columns) * rows * 16 elements.
void PackPanels(const float* matrix, int64_t rows, int64_t columns, float* panels);

// Images whose outer products with gradients are summed.
struct KernelGradientInput {
  // Padded images, and the gradient of the outputs [images, height, width, columns].
  const float* images = nullptr;
  int64_t image_size = 0;
  const float* gradients = nullptr;
  int64_t count = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t columns = 0;
  // Distance in `images` of the patches of neighbouring pixels.
  int64_t pixel_stride = 0;
  int64_t row_stride = 0;
  Patch patch;
};

// Blocks of the kernel's gradient that KernelGradientBlock computes one at a time.
int64_t NumKernelGradientBlocks(const KernelGradientInput& input);

// One block of kernel_gradient [patch elements, columns] = the sum over all pixels of the outer product of the patch
// and the gradient. Pixels are summed in bands of a fixed size, then the bands in order.
void KernelGradientBlock(const KernelGradientInput& input, int64_t block, float* kernel_gradient);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_CONV_KERNEL_H_
