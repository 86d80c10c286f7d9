#ifndef LOCKSTEP_WORKER_NN_LAYERS_IMAGES_WINDOW_H_
#define LOCKSTEP_WORKER_NN_LAYERS_IMAGES_WINDOW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/kernels/images/window_geometry.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a layer's geometry from its configuration, as TensorFlow defines it: VALID has ceil((input - size + 1) /
// stride) windows and no padding; SAME has ceil(input / stride) windows and pads max((output - 1) stride + size -
// input, 0) positions, the smaller half of them before the first position. HALF always pads size - 1 positions, split
// in the same way.
//
// `size` and `strides` have one number for both dimensions, or one for each. If `strides` is empty, the strides are
// `otherwise`, or `size` if `otherwise` is 0. Returns InvalidArgument for inputs that are neither [height, width,
// channels] nor [height, width], and for windows larger than the input if the padding is VALID.
absl::StatusOr<WindowGeometry> MakeWindowGeometry(const LayerBuilder& builder,
                                                  const google::protobuf::RepeatedField<int64_t>& size,
                                                  const google::protobuf::RepeatedField<int64_t>& strides,
                                                  int64_t otherwise, config::v1::Padding padding);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_IMAGES_WINDOW_H_
