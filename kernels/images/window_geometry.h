#ifndef LOCKSTEP_KERNELS_IMAGES_WINDOW_GEOMETRY_H_
#define LOCKSTEP_KERNELS_IMAGES_WINDOW_GEOMETRY_H_

#include <cstdint>

namespace lockstep {

// A window of `size` that slides over `input` positions in one dimension. Window o covers the positions [o * stride -
// padding, o * stride - padding + size). Positions outside [0, input) are padding.
struct SlidingWindow {
  int64_t input = 0;
  int64_t size = 0;
  int64_t stride = 0;
  // Number of padding positions before the first position. The number after the last one follows from it.
  int64_t padding = 0;
  int64_t output = 0;

  int64_t first(int64_t o) const { return o * stride - padding; }
  // Number of positions from the beginning of the first window to the end of the last one, including padding.
  int64_t span() const { return (output - 1) * stride + size; }
};

// The windows of a convolution or pooling over [height, width, channels].
struct WindowGeometry {
  SlidingWindow y;
  SlidingWindow x;
  int64_t channels = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_IMAGES_WINDOW_GEOMETRY_H_
