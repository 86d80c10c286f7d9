#ifndef LOCKSTEP_KERNELS_IMAGES_WINDOW_GEOMETRY_H_
#define LOCKSTEP_KERNELS_IMAGES_WINDOW_GEOMETRY_H_

#include <cstdint>

namespace lockstep {

// A window of `size` that slides over `input` positions in one dimension. Window o covers the positions
// [o * stride - padding, o * stride - padding + size); positions outside [0, input) are padding.
struct SlidingWindow {
  int64_t input = 0;
  int64_t size = 0;
  int64_t stride = 0;
  // Positions before the first one; the number after the last one follows from it.
  int64_t padding = 0;
  int64_t output = 0;

  int64_t first(int64_t o) const { return o * stride - padding; }
  // Positions from the beginning of the first window to the end of the last one, padding included.
  int64_t span() const { return (output - 1) * stride + size; }
};

// Height and width of a convolution or of pooling over [height, width, channels].
struct WindowGeometry {
  SlidingWindow y;
  SlidingWindow x;
  int64_t channels = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_IMAGES_WINDOW_GEOMETRY_H_
