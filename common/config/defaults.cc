#include "lockstep/common/config/defaults.h"

#include "absl/algorithm/container.h"

namespace lockstep {

v1::Initializer Glorot() {
  v1::Initializer initializer;
  initializer.mutable_glorot();
  return initializer;
}

namespace {

void DefaultTo(bool present, v1::Initializer* initializer, const v1::Initializer& value) {
  if (!present || initializer->kind_case() == v1::Initializer::KIND_NOT_SET) *initializer = value;
}

v1::Initializer Zeros() {
  v1::Initializer initializer;
  initializer.mutable_zeros();
  return initializer;
}

// `Kind` is Dense, Conv2d or DepthwiseConv2d.
template <typename Kind>
void DefaultInitializers(Kind* layer) {
  DefaultTo(layer->has_kernel_initializer(), layer->mutable_kernel_initializer(), Glorot());
  if (!layer->no_bias()) DefaultTo(layer->has_bias_initializer(), layer->mutable_bias_initializer(), Zeros());
}

void DefaultDepthwise(config::v1::Layer::DepthwiseConv2d* layer) {
  if (layer->strides().empty()) layer->add_strides(1);
  if (!layer->has_multiplier()) layer->set_multiplier(1);
  DefaultInitializers(layer);
}

void DefaultSeparable(config::v1::Layer::SeparableConv2d* layer) {
  if (layer->strides().empty()) layer->add_strides(1);
  if (!layer->has_multiplier()) layer->set_multiplier(1);
  DefaultTo(layer->has_depthwise_initializer(), layer->mutable_depthwise_initializer(), Glorot());
  DefaultTo(layer->has_pointwise_initializer(), layer->mutable_pointwise_initializer(), Glorot());
  if (!layer->no_bias()) DefaultTo(layer->has_bias_initializer(), layer->mutable_bias_initializer(), Zeros());
}

void DefaultLocalResponseNorm(config::v1::Layer::LocalResponseNorm* layer) {
  if (!layer->has_depth_radius()) layer->set_depth_radius(5);
  if (!layer->has_bias()) layer->set_bias(1);
  if (!layer->has_alpha()) layer->set_alpha(1);
  if (!layer->has_beta()) layer->set_beta(0.5f);
}

void DefaultModel(config::v1::ModelConfig* model) {
  for (config::v1::Layer& layer : *model->mutable_layer()) ApplyLayerDefaults(&layer);
  for (config::v1::Loss& loss : *model->mutable_loss()) {
    if (!loss.has_weight()) loss.set_weight(1);
    if (loss.has_huber() && !loss.huber().has_delta()) loss.mutable_huber()->set_delta(1);
  }
}

void DefaultChannels(config::v1::InputConfig::ImageForm* form) {
  if (!form->has_channels()) form->set_channels(3);
}

// The keys are those of tf-slim's dataset converters.
void DefaultTfRecord(config::v1::InputConfig::TfRecord* tfrecord) {
  if (!tfrecord->has_image()) return;
  DefaultChannels(tfrecord->mutable_image());
  if (tfrecord->feature_key().empty()) tfrecord->set_feature_key("image/encoded");
  if (tfrecord->label_key().empty()) tfrecord->set_label_key("image/class/label");
}

void DefaultInput(config::v1::InputConfig* input) {
  for (auto& split : *input->mutable_split()) {
    if (split.has_csv() && split.csv().separator().empty()) split.mutable_csv()->set_separator(",");
    if (split.has_tfrecord()) DefaultTfRecord(split.mutable_tfrecord());
    if (split.has_images()) DefaultChannels(split.mutable_images()->mutable_form());
    if (split.has_synthetic() && !split.synthetic().has_noise()) split.mutable_synthetic()->set_noise(1);
  }
  if (input->has_normalization() && !input->normalization().has_stddev()) input->mutable_normalization()->set_stddev(1);
}

void DefaultLearningRate(config::v1::LearningRate* rate) {
  if (rate->has_polynomial() && rate->polynomial().power() == 0) rate->mutable_polynomial()->set_power(1);
  if (rate->has_cosine_restarts()) {
    auto* restarts = rate->mutable_cosine_restarts();
    if (restarts->t_mul() == 0) restarts->set_t_mul(2);
    if (restarts->m_mul() == 0) restarts->set_m_mul(1);
  }
}

}  // namespace

void ApplyLayerDefaults(config::v1::Layer* layer) {
  switch (layer->kind_case()) {
    case config::v1::Layer::kDense:
      return DefaultInitializers(layer->mutable_dense());
    case config::v1::Layer::kConv2D:
      if (layer->conv2d().strides().empty()) layer->mutable_conv2d()->add_strides(1);
      return DefaultInitializers(layer->mutable_conv2d());
    case config::v1::Layer::kDepthwiseConv2D:
      return DefaultDepthwise(layer->mutable_depthwise_conv2d());
    case config::v1::Layer::kSeparableConv2D:
      return DefaultSeparable(layer->mutable_separable_conv2d());
    case config::v1::Layer::kLrn:
      return DefaultLocalResponseNorm(layer->mutable_lrn());
    case config::v1::Layer::kMaxPool:
      if (layer->max_pool().strides().empty())
        *layer->mutable_max_pool()->mutable_strides() = layer->max_pool().window();
      return;
    case config::v1::Layer::kAveragePool:
      if (!layer->average_pool().strides().empty()) return;
      *layer->mutable_average_pool()->mutable_strides() = layer->average_pool().window();
      return;
    case config::v1::Layer::kBatchNorm:
      if (!layer->batch_norm().has_decay()) layer->mutable_batch_norm()->set_decay(0.99f);
      if (!layer->batch_norm().has_epsilon()) layer->mutable_batch_norm()->set_epsilon(0.001f);
      return;
    case config::v1::Layer::kLayerNorm:
      if (!layer->layer_norm().has_epsilon()) layer->mutable_layer_norm()->set_epsilon(1e-5f);
      return;
    case config::v1::Layer::kEmbedding: {
      v1::Initializer uniform;
      uniform.mutable_uniform()->set_min(-0.05f);
      uniform.mutable_uniform()->set_max(0.05f);
      auto* embedding = layer->mutable_embedding();
      return DefaultTo(embedding->has_initializer(), embedding->mutable_initializer(), uniform);
    }
    case config::v1::Layer::kActivation:
      if (layer->activation().kind() != config::v1::LEAKY_RELU || layer->activation().has_slope()) return;
      return layer->mutable_activation()->set_slope(0.2f);
    default:
      return;
  }
}

void ApplyOptimizerDefaults(config::v1::OptimizerConfig* optimizer) {
  switch (optimizer->kind_case()) {
    case config::v1::OptimizerConfig::kMomentum:
      if (!optimizer->momentum().has_momentum()) optimizer->mutable_momentum()->set_momentum(0.9f);
      break;
    case config::v1::OptimizerConfig::kAdam: {
      auto* adam = optimizer->mutable_adam();
      if (!adam->has_beta1()) adam->set_beta1(0.9f);
      if (!adam->has_beta2()) adam->set_beta2(0.999f);
      if (!adam->has_epsilon()) adam->set_epsilon(1e-8f);
      break;
    }
    case config::v1::OptimizerConfig::kAdagrad:
      if (!optimizer->adagrad().has_initial_accumulator()) optimizer->mutable_adagrad()->set_initial_accumulator(0.1f);
      break;
    case config::v1::OptimizerConfig::kRmsprop: {
      auto* rmsprop = optimizer->mutable_rmsprop();
      if (!rmsprop->has_decay()) rmsprop->set_decay(0.9f);
      if (!rmsprop->has_epsilon()) rmsprop->set_epsilon(1e-10f);
      break;
    }
    case config::v1::OptimizerConfig::kAdadelta: {
      auto* adadelta = optimizer->mutable_adadelta();
      if (!adadelta->has_rho()) adadelta->set_rho(0.95f);
      if (!adadelta->has_epsilon()) adadelta->set_epsilon(1e-8f);
      break;
    }
    case config::v1::OptimizerConfig::kFtrl: {
      auto* ftrl = optimizer->mutable_ftrl();
      if (!ftrl->has_learning_rate_power()) ftrl->set_learning_rate_power(-0.5f);
      if (!ftrl->has_initial_accumulator()) ftrl->set_initial_accumulator(0.1f);
      break;
    }
    case config::v1::OptimizerConfig::kProximalAdagrad: {
      auto* adagrad = optimizer->mutable_proximal_adagrad();
      if (!adagrad->has_initial_accumulator()) adagrad->set_initial_accumulator(0.1f);
      break;
    }
    case config::v1::OptimizerConfig::kAdagradDa: {
      auto* adagrad = optimizer->mutable_adagrad_da();
      if (!adagrad->has_initial_accumulator()) adagrad->set_initial_accumulator(0.1f);
      break;
    }
    case config::v1::OptimizerConfig::kNadam: {
      auto* nadam = optimizer->mutable_nadam();
      if (!nadam->has_beta1()) nadam->set_beta1(0.9f);
      if (!nadam->has_beta2()) nadam->set_beta2(0.999f);
      if (!nadam->has_epsilon()) nadam->set_epsilon(1e-8f);
      if (!nadam->has_momentum_decay()) nadam->set_momentum_decay(0.004f);
      break;
    }
    case config::v1::OptimizerConfig::kLion: {
      auto* lion = optimizer->mutable_lion();
      if (!lion->has_beta1()) lion->set_beta1(0.9f);
      if (!lion->has_beta2()) lion->set_beta2(0.99f);
      break;
    }
    case config::v1::OptimizerConfig::kSgd:
    case config::v1::OptimizerConfig::kProximalSgd:
    case config::v1::OptimizerConfig::KIND_NOT_SET:
      break;
  }
  if (optimizer->has_learning_rate()) DefaultLearningRate(optimizer->mutable_learning_rate());
  for (auto& group : *optimizer->mutable_group()) {
    if (group.has_optimizer()) ApplyOptimizerDefaults(group.mutable_optimizer());
  }
}

void ApplyPolicyDefaults(config::v1::TrainingConfig* training) {
  if (!training->has_first_arrivals()) return;
  auto* policy = training->mutable_first_arrivals();
  if (policy->total_replicas() == 0) policy->set_total_replicas(training->replicas_to_aggregate());
  if (!policy->has_initial_tokens()) policy->set_initial_tokens(training->replicas_to_aggregate());
}

void ApplyDefaults(config::v1::RunSpec* config) {
  if (config->has_model()) DefaultModel(config->mutable_model());
  if (config->has_input()) DefaultInput(config->mutable_input());
  if (config->has_optimizer()) ApplyOptimizerDefaults(config->mutable_optimizer());
  if (config->training().replicas_to_aggregate() == 0) config->mutable_training()->set_replicas_to_aggregate(1);
  ApplyPolicyDefaults(config->mutable_training());
  auto* checkpoint = config->mutable_checkpoint();
  if (!checkpoint->has_every_seconds()) checkpoint->set_every_seconds(600);
  if (!checkpoint->has_keep()) checkpoint->set_keep(5);
  if (!checkpoint->has_stop_seconds()) checkpoint->set_stop_seconds(30);
  if (!config->summary().has_every_steps()) config->mutable_summary()->set_every_steps(100);
  const auto is_test = [](const config::v1::InputConfig::Split& split) { return split.name() == "test"; };
  if (config->evaluation().split().empty() && absl::c_any_of(config->input().split(), is_test)) {
    config->mutable_evaluation()->set_split("test");
  }
  auto* cluster = config->mutable_cluster();
  if (!cluster->has_lease_seconds()) cluster->set_lease_seconds(5);
  if (!cluster->has_chief_wait_seconds()) cluster->set_chief_wait_seconds(600);
  if (!cluster->has_shared_memory()) cluster->set_shared_memory(true);
  if (cluster->compute_threads() == 0) cluster->set_compute_threads(1);
}

}  // namespace lockstep
