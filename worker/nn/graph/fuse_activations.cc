#include "lockstep/worker/nn/graph/fuse_activations.h"

#include <string>

#include "absl/container/flat_hash_map.h"
#include "lockstep/worker/nn/compute/activation_function.h"

namespace lockstep {
namespace {

// Returns true if `layer` has an activation field and it is NONE.
bool HasFreeActivation(const config::v1::Layer& layer) {
  switch (layer.kind_case()) {
    case config::v1::Layer::kDense:
      return layer.dense().activation() == config::v1::NONE;
    case config::v1::Layer::kConv2D:
      return layer.conv2d().activation() == config::v1::NONE;
    case config::v1::Layer::kBatchNorm:
      return layer.batch_norm().activation() == config::v1::NONE;
    default:
      return false;
  }
}

void SetActivation(config::v1::Activation activation, config::v1::Layer* layer) {
  if (layer->has_dense()) layer->mutable_dense()->set_activation(activation);
  if (layer->has_conv2d()) layer->mutable_conv2d()->set_activation(activation);
  if (layer->has_batch_norm()) layer->mutable_batch_norm()->set_activation(activation);
}

// Fused activations support only the default slope.
bool CanMove(const config::v1::Layer::ActivationLayer& activation) {
  return Activation_IsValid(activation.kind()) && (!activation.has_slope() || activation.slope() == kDefaultLeakySlope);
}

// Returns the number of layers and losses that read each layer, by name.
absl::flat_hash_map<std::string, int> CountReaders(const config::v1::ModelConfig& config) {
  absl::flat_hash_map<std::string, int> readers;
  for (int i = 0; i < config.layer_size(); ++i) {
    for (const std::string& input : config.layer(i).input()) ++readers[input];
    if (config.layer(i).input().empty() && i > 0) ++readers[config.layer(i - 1).name()];
  }
  for (const config::v1::Loss& loss : config.loss()) {
    ++readers[loss.input().empty() ? config.layer(config.layer_size() - 1).name() : loss.input()];
  }
  return readers;
}

}  // namespace

config::v1::ModelConfig FuseActivations(const config::v1::ModelConfig& config) {
  config::v1::ModelConfig fused = config;
  if (config.layer().empty()) return fused;
  const absl::flat_hash_map<std::string, int> readers = CountReaders(config);
  for (int i = 1; i < fused.layer_size(); ++i) {
    // Looks only at the preceding layer; other cases are rare.
    config::v1::Layer* before = fused.mutable_layer(i - 1);
    config::v1::Layer* layer = fused.mutable_layer(i);
    const bool reads_it = layer->input().empty() || (layer->input_size() == 1 && layer->input(0) == before->name());
    if (!layer->has_activation() || !reads_it || !HasFreeActivation(*before) || !CanMove(layer->activation())) continue;
    if (readers.at(before->name()) != 1) continue;
    SetActivation(layer->activation().kind(), before);
    layer->mutable_activation()->clear_kind();
    layer->mutable_activation()->clear_slope();
  }
  return fused;
}

}  // namespace lockstep
