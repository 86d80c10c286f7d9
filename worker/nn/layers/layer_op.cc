#include "lockstep/worker/nn/layers/layer_op.h"

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"

namespace lockstep {
namespace {

config::v1::Layer WithDefaults(config::v1::Layer layer) {
  ApplyLayerDefaults(&layer);
  return layer;
}

}  // namespace

LayerBuilder::LayerBuilder(const config::v1::Layer& config, absl::Span<const Shape> input_shapes, v1::ModelSpec* spec)
    : config_(WithDefaults(config)), input_shapes_(input_shapes), spec_(spec) {}

absl::Status LayerBuilder::ErrorWithText(absl::string_view text) const {
  return absl::InvalidArgumentError(absl::StrCat("layer '", config_.name(), "': ", text));
}

absl::Status LayerBuilder::CheckActivation(config::v1::Activation activation) const {
  if (Activation_IsValid(activation)) return absl::OkStatus();
  return Error("there is no activation ", static_cast<int>(activation));
}

absl::StatusOr<Shape> LayerBuilder::CheckedShape(absl::string_view what, absl::Span<const int64_t> dims) const {
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim <= 0) return Error(what, " would have a dimension of ", dim);
    if (dim > kMaxElements / elements) return Error(what, " would have more than ", kMaxElements, " elements");
    elements *= dim;
  }
  return Shape::Create(dims);
}

absl::StatusOr<Shape> LayerBuilder::OutputShape(absl::Span<const int64_t> dims) const {
  return CheckedShape("the output", dims);
}

absl::StatusOr<int> LayerBuilder::AddVariable(absl::string_view name, std::initializer_list<int64_t> dims,
                                              const v1::Initializer& initializer, bool trainable) {
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(absl::StrCat("variable '", name, "'"), dims));
  v1::VariableSpec* variable = spec_->add_variables();
  variable->set_name(absl::StrCat(config_.name(), "/", name));
  variable->set_dtype(v1::DT_FLOAT);
  for (const int64_t dim : shape.dims()) variable->add_shape(dim);
  variable->set_trainable(trainable);
  *variable->mutable_initializer() = initializer;
  return spec_->variables_size() - 1;
}

int LayerBuilder::AddMovingAverage(int variable, float decay, bool zero_debias) {
  v1::UpdateOpSpec* update = spec_->add_update_ops();
  update->set_variable(spec_->variables(variable).name());
  update->set_kind(v1::UpdateOpSpec::MOVING_AVERAGE);
  update->set_decay(decay);
  update->set_zero_debias(zero_debias);
  return spec_->update_ops_size() - 1;
}

v1::Initializer ConstantInitializer(float value) {
  v1::Initializer initializer;
  if (value == 0) {
    initializer.mutable_zeros();
  } else {
    initializer.mutable_constant()->set_value(value);
  }
  return initializer;
}

}  // namespace lockstep
