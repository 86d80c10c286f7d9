#ifndef LOCKSTEP_WORKER_NN_KERNELS_CONV_KERNEL_H_
#define LOCKSTEP_WORKER_NN_KERNELS_CONV_KERNEL_H_

#include <cstdint>

#include "lockstep/worker/nn/kernels/tile_kernel.h"

namespace lockstep {

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
  // What one pixel's patch consists of; step is 1.
  TileElements patch;
};

// Blocks of the kernel's gradient that KernelGradientBlock computes one at a time.
int64_t NumKernelGradientBlocks(const KernelGradientInput& input);

// One block of kernel_gradient [patch elements, columns] = the sum over all pixels of the outer product of the patch
// and the gradient. Pixels are summed in bands of a fixed size, then the bands in order.
void KernelGradientBlock(const KernelGradientInput& input, int64_t block, float* kernel_gradient);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_KERNELS_CONV_KERNEL_H_
