#ifndef LOCKSTEP_KERNELS_IMAGES_POOL_H_
#define LOCKSTEP_KERNELS_IMAGES_POOL_H_

#include <cstdint>

#include "lockstep/kernels/images/window_geometry.h"

namespace lockstep {

// Pooling of one image [height, width, channels]. Only the positions inside the image count.

// y = the largest element of each window, or NaN if the window has one. Unless `winners` is null, winners[i] = the
// number of y[i]'s position in its window, row by row.
void MaxPoolImage(const WindowGeometry& geometry, const float* x, int32_t* winners, float* y);
// y = the mean of each window.
void AveragePoolImage(const WindowGeometry& geometry, const float* x, float* y);

// These overwrite dx. Max pooling passes each dy to the winning position; average pooling passes an equal part of it to
// each position of its window.
void MaxPoolGradient(const WindowGeometry& geometry, const int32_t* winners, const float* dy, float* dx);
void AveragePoolGradient(const WindowGeometry& geometry, const float* dy, float* dx);

// Average pooling with one window over all positions of [rows, columns], with columns as channels. y = the mean of the
// rows, added in order, and dx = dy / rows in each row.
void MeanOfRows(int64_t rows, int64_t columns, const float* x, float* y);
void MeanOfRowsGradient(int64_t rows, int64_t columns, const float* dy, float* dx);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_IMAGES_POOL_H_
