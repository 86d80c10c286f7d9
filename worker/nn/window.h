#ifndef LOCKSTEP_WORKER_NN_WINDOW_H_
#define LOCKSTEP_WORKER_NN_WINDOW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "proto/model.pb.h"
#include "worker/nn/layer_op.h"

namespace lockstep {

// How a window of `size` slides over `input` positions in one dimension. Window o covers the positions
// [o * stride - padding, o * stride - padding + size); those outside [0, input) are padding.
struct SlidingWindow {
  int64_t input = 0;
  int64_t size = 0;
  int64_t stride = 0;
  // Positions before the first one; the number after the last one follows.
  int64_t padding = 0;
  int64_t output = 0;

  int64_t first(int64_t o) const { return o * stride - padding; }
  // Positions from the first window's begin to the last one's end, padding included.
  int64_t span() const { return (output - 1) * stride + size; }
};

// Height and width of a convolution or of pooling over [height, width, channels].
struct WindowGeometry {
  SlidingWindow y;
  SlidingWindow x;
  int64_t channels = 0;
};

// From a layer's configuration, as TensorFlow defines it: VALID has ceil((input - size + 1) / stride) windows and no
// padding; SAME has ceil(input / stride) windows, and pads max((output - 1) stride + size - input, 0)
// positions, the smaller half of them before the first one.
// A list has one number for both dimensions, or two; without numbers `strides` are `otherwise`, or `size` when that is
// 0. InvalidArgument for inputs that are neither [height, width, channels] nor [height, width], and for windows that
// are larger than the input without padding.
absl::StatusOr<WindowGeometry> MakeWindowGeometry(const LayerBuilder& builder,
                                                  const google::protobuf::RepeatedField<int64_t>& size,
                                                  const google::protobuf::RepeatedField<int64_t>& strides,
                                                  int64_t otherwise, Padding padding);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_WINDOW_H_
