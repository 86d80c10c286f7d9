#ifndef LOCKSTEP_KERNELS_IMAGES_DEPTHWISE_H_
#define LOCKSTEP_KERNELS_IMAGES_DEPTHWISE_H_

#include <cstdint>

#include "lockstep/kernels/images/window_geometry.h"

namespace lockstep {

// Convolution of images [height, width, channels] in which each channel has its own kernel: w [window height, window
// width, channels]. Positions outside the image are omitted. Each sum is one chain of fused multiply-adds.

// y = b + the sum of x w over a window's positions, row by row. b is 0 if `bias` is null.
void DepthwiseImage(const WindowGeometry& geometry, const float* x, const float* w, const float* bias, float* y);

// dx = the sum of dy w over the windows that contain a position, row by row.
void DepthwiseInputGradient(const WindowGeometry& geometry, const float* dy, const float* w, float* dx);

// dw = the sum of dy x over `count` images and each image's outputs, row by row, for the window's positions [begin,
// end), numbered row by row. Does not touch the rest of dw.
void DepthwiseKernelGradient(const WindowGeometry& geometry, int64_t count, const float* x, const float* dy,
                             int64_t begin, int64_t end, float* dw);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_IMAGES_DEPTHWISE_H_
