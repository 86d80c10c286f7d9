#ifndef LOCKSTEP_TRAIN_SLIM_NETS_NETS_H_
#define LOCKSTEP_TRAIN_SLIM_NETS_NETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/config/v1/model.pb.h"

namespace lockstep::train::slim::nets {

struct NetOptions {
  // Number of outputs. 1 or more.
  int64_t classes = 1000;
  // Height and width of the images, in pixels. 32 or more.
  int64_t image_size = 224;
  // Factor by which the number of filters of every layer is multiplied. Products are rounded down, but are at least 1
  // (MobilenetV1: 8). Above 0.
  double width = 1;
};

// Return one of the networks of tf_slim.nets, or mobilenet_v1 of tensorflow/models, with the same layers, variables,
// initial values, batch norm, dropout, weight decay (as regularizers) and softmax cross-entropy loss. Variables have
// the originals' names except for the last component: "kernel" instead of "weights" ("depthwise_weights" in a depthwise
// layer), and "bias" instead of "biases". Images are [image_size, image_size, channels]. Where an original has a 7 x 7
// window for 224 x 224 images, the window here has the size to which image_size is reduced at that layer, which is also
// 7 for 224. Return InvalidArgument naming an option that is out of range.
absl::StatusOr<config::v1::ModelConfig> Vgg16(const NetOptions& options = {});
absl::StatusOr<config::v1::ModelConfig> InceptionV1(const NetOptions& options = {});
absl::StatusOr<config::v1::ModelConfig> ResnetV1_50(const NetOptions& options = {});
absl::StatusOr<config::v1::ModelConfig> MobilenetV1(const NetOptions& options = {});

// Returns "vgg_16", "inception_v1", "resnet_v1_50", "mobilenet_v1".
std::vector<std::string> NetNames();
// Returns the network with this name. Returns NotFound listing the valid names if there is none.
absl::StatusOr<config::v1::ModelConfig> NetByName(absl::string_view name, const NetOptions& options = {});

}  // namespace lockstep::train::slim::nets

#endif  // LOCKSTEP_TRAIN_SLIM_NETS_NETS_H_
