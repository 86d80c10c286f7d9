#ifndef LOCKSTEP_COMMON_KERNELS_POOL_H_
#define LOCKSTEP_COMMON_KERNELS_POOL_H_

#include <cstdint>

#include "lockstep/common/kernels/window_geometry.h"

namespace lockstep {

// Pooling of one image [height, width, channels]. Only the positions inside the image count.

// y = the largest of each window, a NaN if there is one. Unless `winners` is null, winners[i] = the number of y[i]'s
// position in its window, row by row.
void MaxPoolImage(const WindowGeometry& geometry, const float* x, int32_t* winners, float* y);
// y = the mean of each window.
void AveragePoolImage(const WindowGeometry& geometry, const float* x, float* y);

// Each dy goes to the position that won, or in equal parts to those of its window; dx is overwritten.
void MaxPoolGradient(const WindowGeometry& geometry, const int32_t* winners, const float* dy, float* dx);
void AveragePoolGradient(const WindowGeometry& geometry, const float* dy, float* dx);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_KERNELS_POOL_H_
