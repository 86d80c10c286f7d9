#ifndef LOCKSTEP_TRAIN_SLIM_NETS_NET_BUILDER_H_
#define LOCKSTEP_TRAIN_SLIM_NETS_NET_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/config/v1/model.pb.h"

namespace lockstep::train::slim::nets {

// Builds an image network layer by layer. Layers are named like tf-slim's scopes, so that their variables have
// tf-slim's names except for the last component. Each method returns the name of the last layer that it adds, which can
// be the input of other layers. Not thread-safe.
class NetBuilder {
 public:
  struct Options {
    // The first part of every name, such as "InceptionV1".
    std::string scope;
    // Initializer of the kernels.
    v1::Initializer initializer;
    // Settings of batch norm after a convolution, which then has no bias. If null, there is no batch norm.
    const config::v1::Layer::BatchNorm* batch_norm = nullptr;
    config::v1::Activation activation = config::v1::RELU;
  };

  // Square window of a convolution or of pooling.
  struct Window {
    int64_t size = 1;
    int64_t stride = 1;
    config::v1::Padding padding = config::v1::SAME;
  };

  NetBuilder(const Options& options, config::v1::ModelConfig* model);

  // Adds a convolution, batch norm if configured, and the activation unless `linear`. An empty `input` means the
  // previous layer.
  std::string Conv(const std::string& name, const std::string& input, int64_t filters, const Window& window,
                   bool linear = false);
  // Adds a convolution with one kernel per channel, batch norm if configured, and the activation.
  std::string Depthwise(const std::string& name, const std::string& input, const Window& window);
  // Adds a convolution with bias, without batch norm or activation.
  std::string Logits(const std::string& name, int64_t classes) { return Logits(name, classes, options_.initializer); }
  std::string Logits(const std::string& name, int64_t classes, const v1::Initializer& initializer);
  std::string MaxPool(const std::string& name, const std::string& input, const Window& window);
  std::string Concat(const std::string& name, const std::vector<std::string>& inputs);
  // Adds the sum of both inputs, then the activation.
  std::string Residual(const std::string& name, const std::string& shortcut, const std::string& residual);
  std::string Dropout(const std::string& name, float rate);
  // Adds the mean over height and width, of shape [1, 1, channels].
  std::string Mean(const std::string& name, int64_t channels);
  std::string Flatten(const std::string& name);

 private:
  config::v1::Layer* Add(const std::string& name, const std::string& input);
  // Adds batch norm and the activation after a convolution without bias.
  std::string Finish(const std::string& name, bool linear);

  const Options options_;
  config::v1::ModelConfig* const model_;
};

}  // namespace lockstep::train::slim::nets

#endif  // LOCKSTEP_TRAIN_SLIM_NETS_NET_BUILDER_H_
