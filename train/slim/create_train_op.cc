#include "lockstep/train/slim/create_train_op.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/train/session/open_session.h"
#include "lockstep/train/slim/transformed_model.h"
#include "re2/re2.h"

namespace lockstep::train::slim {
namespace {

absl::Status CheckArguments(const CreateTrainOpOptions& options) {
  if (!options.global_step.is_default() && options.global_step.Or(absl::nullopt).value_or("") != "global_step") {
    return WrongOption(
        "global_step",
        "must be the run's own: it counts the updates and names each batch and random number, so that the "
        "weights depend on nothing else");
  }
  if (options.variables_to_train && options.variables_to_train->empty()) {
    return WrongOption("variables_to_train", "is empty; leave it out to train all");
  }
  for (const auto& [key, multiplier] : options.gradient_multipliers) {
    const auto* const function = std::get_if<1>(&multiplier);
    if (function != nullptr && !*function)
      return WrongOption("gradient_multipliers", absl::StrCat(key.name, ": is null"));
  }
  const bool has_slims = !options.gradient_multipliers.empty() || options.clip_gradient_norm > 0;
  if (options.transform_grads_fn && has_slims) {
    return WrongOption("transform_grads_fn",
                       "is given beside gradient_multipliers or clip_gradient_norm; call MultiplyGradients and "
                       "ClipGradientNorms in it");
  }
  if (!options.check_numerics) {
    return WrongOption(
        "check_numerics",
        "cannot be false: an update that is not finite is never applied. With training.end_on_non_finite the "
        "run ends well before it; with training.skip_non_finite the step counts and changes nothing else");
  }
  if (options.summarize_gradients && options.summarize_every_n_steps <= 0) {
    return WrongOption("summarize_every_n_steps",
                       absl::StrCat(options.summarize_every_n_steps, ", must be more than 0"));
  }
  return absl::OkStatus();
}

void LogIgnored(const CreateTrainOpOptions& options) {
  LOG_IF(INFO, options.gate_gradients != GateGradients::kOp)
      << "gate_gradients has no effect: gradients are computed in one order";
  LOG_IF(INFO, options.aggregation_method.has_value())
      << "aggregation_method has no effect: gradients are summed along one tree";
  LOG_IF(INFO, options.colocate_gradients_with_ops)
      << "colocate_gradients_with_ops has no effect: a worker computes all gradients of its slots";
}

// Returns the multipliers that are functions.
GradientMultipliers FunctionsOf(const GradientMultipliers& multipliers) {
  GradientMultipliers functions;
  for (const auto& [key, multiplier] : multipliers) {
    if (!std::holds_alternative<float>(multiplier)) functions.emplace(key, multiplier);
  }
  return functions;
}

// Moves everything that the configuration can express into it; the order of GradientTransforms applies either way. Of
// two norm limits, keeps the smaller, which has the effect of both.
void SetInConfiguration(const CreateTrainOpOptions& options, config::v1::OptimizerConfig* optimizer) {
  for (const auto& [key, multiplier] : options.gradient_multipliers) {
    const float* const factor = std::get_if<float>(&multiplier);
    if (factor == nullptr) continue;
    config::v1::OptimizerConfig::Multiplier* const added = optimizer->add_multipliers();
    added->set_variables(absl::StrCat("^", RE2::QuoteMeta(key.name), "$"));
    added->set_factor(*factor);
  }
  if (options.clip_gradient_norm <= 0) return;
  const float configured = optimizer->clip().by_norm();
  const float limit = configured > 0 ? std::min(configured, options.clip_gradient_norm) : options.clip_gradient_norm;
  optimizer->mutable_clip()->set_by_norm(limit);
}

// Describes the functions by their values at a few steps. This distinguishes workers whose functions differ at those
// steps.
std::string DescriptionOf(const GradientMultipliers& functions, const CreateTrainOpOptions& options) {
  std::string text;
  for (const auto& [key, multiplier] : functions) {
    absl::StrAppend(&text, key.name, " *");
    for (const int64_t step : {0, 1, 10, 100, 1000, 10000, 100000, 1000000}) {
      absl::StrAppend(&text, " ", std::get<1>(multiplier)(step), "@", step);
    }
    absl::StrAppend(&text, "\n");
  }
  if (options.transform_grads_fn) absl::StrAppend(&text, "transform_grads_fn\n");
  return text;
}

TransformedModel::Options ModelOptionsOf(const CreateTrainOpOptions& options) {
  TransformedModel::Options model;
  model.variables_to_train = options.variables_to_train;
  model.update_ops = options.update_ops;
  model.own_update_ops = options.own_update_ops;
  const GradientMultipliers functions = FunctionsOf(options.gradient_multipliers);
  model.description = DescriptionOf(functions, options);
  if (options.transform_grads_fn) model.transforms.push_back(options.transform_grads_fn);
  if (!functions.empty()) {
    model.transforms.push_back(
        [functions](auto& grads_and_vars, int64_t step) { return MultiplyGradients(grads_and_vars, functions, step); });
  }
  return model;
}

// Returns InvalidArgument if a multiplier does not name a trained variable.
absl::Status CheckMultipliers(const GradientMultipliers& multipliers, const v1::ModelSpec& model) {
  for (const auto& [key, multiplier] : multipliers) {
    bool found = false;
    for (const v1::VariableSpec& variable : model.variables()) {
      found = found || (variable.trainable() && variable.name() == key.name);
    }
    if (!found) return WrongOption("gradient_multipliers", absl::StrCat(key.name, ": no variable that is trained"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainOp> CreateTrainOp(config::v1::RunSpec total_loss, const config::v1::OptimizerConfig& optimizer,
                                      CreateTrainOpOptions options) {
  RETURN_IF_ERROR(CheckArguments(options));
  LogIgnored(options);
  *total_loss.mutable_optimizer() = optimizer;
  const config::v1::TrainingConfig& training = total_loss.training();
  if (training.steps() == 0 && training.additional_steps() == 0) total_loss.mutable_training()->set_unbounded(true);
  if (options.summarize_gradients) {
    total_loss.mutable_summary()->set_gradients_every_steps(options.summarize_every_n_steps);
  }
  SetInConfiguration(options, total_loss.mutable_optimizer());
  ASSIGN_OR_RETURN(TrainOp op, train::CreateTrainOp(std::move(total_loss), options.make_workload));
  const bool transforms = options.variables_to_train || options.update_ops || !options.own_update_ops.empty() ||
                          !options.gradient_multipliers.empty() || options.transform_grads_fn;
  if (!transforms) return op;
  op.transform_model = [model_options = ModelOptionsOf(options), multipliers = options.gradient_multipliers](
                           std::unique_ptr<Model> model) -> absl::StatusOr<std::unique_ptr<Model>> {
    ASSIGN_OR_RETURN(auto transformed, TransformedModel::Create(std::move(model), model_options));
    RETURN_IF_ERROR(CheckMultipliers(multipliers, transformed->spec()));
    return transformed;
  };
  return op;
}

absl::StatusOr<TrainOp> CreateTrainOp(const std::string& total_loss, const std::string& optimizer,
                                      CreateTrainOpOptions options) {
  config::v1::RunSpec spec;
  RETURN_IF_ERROR(ParseTextProto(total_loss, "total_loss", &spec));
  config::v1::OptimizerConfig optimizer_config;
  RETURN_IF_ERROR(ParseTextProto(optimizer, "optimizer", &optimizer_config));
  return CreateTrainOp(std::move(spec), optimizer_config, std::move(options));
}

}  // namespace lockstep::train::slim
