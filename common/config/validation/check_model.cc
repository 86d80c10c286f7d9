#include <cmath>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/config/validation/checks.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

// Requires one size, or a height and a width, all positive. If `required` is false, there may also be none.
template <typename Sizes>
void CheckWindow(const std::string& field, const Sizes& sizes, bool required, ConfigProblems* problems) {
  if (sizes.size() > 2 || (required && sizes.empty())) {
    problems->Add(field, absl::StrCat("has ", sizes.size(), " numbers, must have 1 or 2 (height and width)"));
  }
  for (int i = 0; i < sizes.size(); ++i) problems->RequirePositive(absl::StrCat(field, "[", i, "]"), sizes[i]);
}

void CheckPool(const std::string& field, const config::v1::Layer::Pool& pool, ConfigProblems* problems) {
  CheckWindow(field + ".window", pool.window(), true, problems);
  CheckWindow(field + ".strides", pool.strides(), false, problems);
}

void CheckDense(const std::string& field, const config::v1::Layer::Dense& dense, ConfigProblems* problems) {
  problems->RequirePositive(field + ".units", dense.units());
  CheckInitializer(field + ".kernel_initializer", dense.kernel_initializer(), problems);
  CheckInitializer(field + ".bias_initializer", dense.bias_initializer(), problems);
}

void CheckConv2d(const std::string& field, const config::v1::Layer::Conv2d& conv, ConfigProblems* problems) {
  problems->RequirePositive(field + ".filters", conv.filters());
  CheckWindow(field + ".kernel", conv.kernel(), true, problems);
  CheckWindow(field + ".strides", conv.strides(), false, problems);
  CheckInitializer(field + ".kernel_initializer", conv.kernel_initializer(), problems);
  CheckInitializer(field + ".bias_initializer", conv.bias_initializer(), problems);
}

template <typename Layer>
void CheckDepthwise(const std::string& field, const Layer& layer, ConfigProblems* problems) {
  CheckWindow(field + ".kernel", layer.kernel(), true, problems);
  CheckWindow(field + ".strides", layer.strides(), false, problems);
  if (layer.has_multiplier()) problems->RequirePositive(field + ".multiplier", layer.multiplier());
  CheckInitializer(field + ".bias_initializer", layer.bias_initializer(), problems);
}

void CheckSeparable(const std::string& field, const config::v1::Layer::SeparableConv2d& layer,
                    ConfigProblems* problems) {
  problems->RequirePositive(field + ".filters", layer.filters());
  CheckDepthwise(field, layer, problems);
  CheckInitializer(field + ".depthwise_initializer", layer.depthwise_initializer(), problems);
  CheckInitializer(field + ".pointwise_initializer", layer.pointwise_initializer(), problems);
}

void CheckLocalResponseNorm(const std::string& field, const config::v1::Layer::LocalResponseNorm& layer,
                            ConfigProblems* problems) {
  problems->RequireNotNegative(field + ".depth_radius", layer.depth_radius());
  if (layer.has_bias()) problems->RequirePositive(field + ".bias", layer.bias());
  problems->RequireNotNegative(field + ".alpha", layer.alpha());
  problems->RequireFinite(field + ".beta", layer.beta());
}

void CheckEmbedding(const std::string& field, const config::v1::Layer::Embedding& embedding, ConfigProblems* problems) {
  problems->RequirePositive(field + ".vocabulary", embedding.vocabulary());
  problems->RequirePositive(field + ".dimension", embedding.dimension());
  CheckInitializer(field + ".initializer", embedding.initializer(), problems);
}

void CheckReshape(const std::string& field, const config::v1::Layer::Reshape& reshape, ConfigProblems* problems) {
  int open = 0;
  for (int i = 0; i < reshape.shape_size(); ++i) {
    const int64_t dim = reshape.shape(i);
    open += dim == -1;
    problems->Require(absl::StrCat(field, ".shape[", i, "]"), dim, dim > 0 || (dim == -1 && open == 1),
                      "above 0, or -1 once");
  }
}

void CheckLayerKind(const std::string& field, const config::v1::Layer& layer, ConfigProblems* problems) {
  switch (layer.kind_case()) {
    case config::v1::Layer::kDense:
      return CheckDense(field + ".dense", layer.dense(), problems);
    case config::v1::Layer::kConv2D:
      return CheckConv2d(field + ".conv2d", layer.conv2d(), problems);
    case config::v1::Layer::kDepthwiseConv2D:
      CheckInitializer(field + ".depthwise_conv2d.kernel_initializer", layer.depthwise_conv2d().kernel_initializer(),
                       problems);
      return CheckDepthwise(field + ".depthwise_conv2d", layer.depthwise_conv2d(), problems);
    case config::v1::Layer::kSeparableConv2D:
      return CheckSeparable(field + ".separable_conv2d", layer.separable_conv2d(), problems);
    case config::v1::Layer::kLrn:
      return CheckLocalResponseNorm(field + ".lrn", layer.lrn(), problems);
    case config::v1::Layer::kMaxPool:
      return CheckPool(field + ".max_pool", layer.max_pool(), problems);
    case config::v1::Layer::kAveragePool:
      return CheckPool(field + ".average_pool", layer.average_pool(), problems);
    case config::v1::Layer::kBatchNorm:
      if (layer.batch_norm().zero_debias_moving_mean()) {
        problems->RequireFraction(field + ".batch_norm.decay", layer.batch_norm().decay());
      } else {
        problems->RequireFractionOrOne(field + ".batch_norm.decay", layer.batch_norm().decay());
      }
      if (!layer.batch_norm().has_epsilon()) return;
      return problems->RequirePositive(field + ".batch_norm.epsilon", layer.batch_norm().epsilon());
    case config::v1::Layer::kLayerNorm:
      if (!layer.layer_norm().has_epsilon()) return;
      return problems->RequirePositive(field + ".layer_norm.epsilon", layer.layer_norm().epsilon());
    case config::v1::Layer::kDropout:
      return problems->RequireFraction(field + ".dropout.rate", layer.dropout().rate());
    case config::v1::Layer::kEmbedding:
      return CheckEmbedding(field + ".embedding", layer.embedding(), problems);
    case config::v1::Layer::kActivation:
      return problems->RequireFinite(field + ".activation.slope", layer.activation().slope());
    case config::v1::Layer::kReshape:
      return CheckReshape(field + ".reshape", layer.reshape(), problems);
    case config::v1::Layer::kFlatten:
    case config::v1::Layer::kGlobalAveragePool:
    case config::v1::Layer::kAdd:
    case config::v1::Layer::kConcat:
      return;
    case config::v1::Layer::KIND_NOT_SET:
      return problems->Add(field, "has no kind, must have one of dense, conv2d, max_pool, ...");
  }
}

void CheckLayers(const config::v1::ModelConfig& model, ConfigProblems* problems) {
  std::set<std::string> names = {"input"};
  for (int i = 0; i < model.layer_size(); ++i) {
    const config::v1::Layer& layer = model.layer(i);
    const std::string field = absl::StrCat("model.layer[", i, "]");
    CheckLayerKind(field, layer, problems);
    for (const std::string& input : layer.input()) {
      if (names.count(input) > 0) continue;
      problems->Add(field, absl::StrCat("reads \"", input, "\", which is not a layer before it"));
    }
    problems->RequireText(field + ".name", layer.name());
    if (!names.insert(layer.name()).second) {
      problems->Add(field + ".name", absl::StrCat("is \"", layer.name(), "\", which is taken"));
    }
  }
  for (int i = 0; i < model.loss_size(); ++i) {
    const config::v1::Loss& loss = model.loss(i);
    const std::string field = absl::StrCat("model.loss[", i, "]");
    if (!loss.input().empty() && names.count(loss.input()) == 0) {
      problems->Add(field, absl::StrCat("reads \"", loss.input(), "\", which is not a layer"));
    }
  }
}

void CheckLoss(const std::string& field, const config::v1::Loss& loss, ConfigProblems* problems) {
  problems->RequireFinite(field + ".weight", loss.weight());
  if (loss.kind_case() == config::v1::Loss::KIND_NOT_SET)
    problems->Add(field, "has no kind, such as softmax_cross_entropy {}");
  problems->RequireFractionOrOne(field + ".softmax_cross_entropy.label_smoothing",
                                 loss.softmax_cross_entropy().label_smoothing());
  if (loss.huber().has_delta()) problems->RequirePositive(field + ".huber.delta", loss.huber().delta());
}

// The first integer to which float32 rounds another one.
constexpr double kFirstGap = 1 << 24;

// Returns true if a variable of this integer type may be `value`, which is a whole number.
bool IsInRange(v1::DataType dtype, double value) {
  switch (dtype) {
    case v1::DT_INT64:
      return value >= -0x1p63 && value < 0x1p63;
    case v1::DT_INT32:
      return value >= -0x1p31 && value < 0x1p31;
    case v1::DT_UINT8:
      return value >= 0 && value < 256;
    default:  // DT_BOOL
      return value == 0 || value == 1;
  }
}

}  // namespace

void CheckInitializer(absl::string_view field, const v1::Initializer& initializer, ConfigProblems* problems) {
  const auto path = [&](absl::string_view rest) { return absl::StrCat(field, ".", rest); };
  switch (initializer.kind_case()) {
    case v1::Initializer::kConstant:
      return problems->RequireFinite(path("constant.value"), initializer.constant().value());
    case v1::Initializer::kUniform: {
      const auto& uniform = initializer.uniform();
      problems->RequireFinite(path("uniform.max"), uniform.max());
      return problems->Require(path("uniform.min"), uniform.min(), !(uniform.min() > uniform.max()),
                               absl::StrCat("a finite number, not above max, which is ", uniform.max()));
    }
    case v1::Initializer::kNormal:
      problems->RequireFinite(path("normal.mean"), initializer.normal().mean());
      return problems->RequireNotNegative(path("normal.stddev"), initializer.normal().stddev());
    case v1::Initializer::kTruncatedNormal:
      problems->RequireFinite(path("truncated_normal.mean"), initializer.truncated_normal().mean());
      return problems->RequireNotNegative(path("truncated_normal.stddev"), initializer.truncated_normal().stddev());
    case v1::Initializer::kZeros:
    case v1::Initializer::kGlorot:
    case v1::Initializer::kHe:
    case v1::Initializer::KIND_NOT_SET:
      return;
  }
}

absl::Status ValidateInitializer(const v1::Initializer& initializer) {
  ConfigProblems problems;
  CheckInitializer("initializer", initializer, &problems);
  return problems.ToStatus();
}

absl::Status ValidateInitializer(const v1::VariableSpec& variable) {
  const auto wrong = [&variable](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("variable ", variable.name(), ": ", why));
  };
  const v1::Initializer& initializer = variable.initializer();
  if (const absl::Status status = ValidateInitializer(initializer); !status.ok()) return wrong(status.message());
  if (!IsIntegerVariableType(variable.dtype()) || initializer.has_zeros() ||
      initializer.kind_case() == v1::Initializer::KIND_NOT_SET) {
    return absl::OkStatus();
  }
  const absl::string_view type = NameOf(variable.dtype());
  if (!initializer.has_constant()) {
    return wrong(absl::StrCat("its initializer is for float32, but it is ", type, "; use zeros or constant"));
  }
  const double value = initializer.constant().value();
  if (value != std::floor(value) || !IsInRange(variable.dtype(), value)) {
    return wrong(absl::StrCat("its initializer.constant.value is ", value, ", which is no ", type));
  }
  if (std::abs(value) < kFirstGap) return absl::OkStatus();
  return wrong(
      absl::StrCat("its initializer.constant.value is ", static_cast<int64_t>(value),
                   ", which may be rounded: float32 holds every integer only below 2^24; set an initial value"));
}

void CheckModel(const config::v1::ModelConfig& model, ConfigProblems* problems) {
  if (model.layer_size() > 0 && !model.registered().empty()) {
    problems->Add("model", absl::StrCat("has ", model.layer_size(), " layers and registered: \"", model.registered(),
                                        "\", must have one or the other"));
  }
  if (model.layer_size() > 0 && model.loss().empty()) {
    problems->Add("model", "has layers and no loss, such as loss { softmax_cross_entropy {} }");
  }
  CheckLayers(model, problems);
  for (int i = 0; i < model.loss_size(); ++i) CheckLoss(absl::StrCat("model.loss[", i, "]"), model.loss(i), problems);
  for (int i = 0; i < model.regularizer_size(); ++i) {
    const std::string field = absl::StrCat("model.regularizer[", i, "]");
    problems->RequireExpression(field + ".variables", model.regularizer(i).variables());
    problems->RequireNotNegative(field + ".l1", model.regularizer(i).l1());
    problems->RequireNotNegative(field + ".l2", model.regularizer(i).l2());
  }
}

}  // namespace lockstep
