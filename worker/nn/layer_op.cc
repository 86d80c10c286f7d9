#include "worker/nn/layer_op.h"

#include "common/base/status_macros.h"

namespace lockstep {

absl::Status LayerBuilder::ErrorWithText(absl::string_view text) const {
  return absl::InvalidArgumentError(absl::StrCat("layer '", config_.name(), "': ", text));
}

absl::Status LayerBuilder::CheckActivation(Activation activation) const {
  if (Activation_IsValid(activation)) return absl::OkStatus();
  return Error("there is no activation ", static_cast<int>(activation));
}

absl::StatusOr<Shape> LayerBuilder::CheckedShape(absl::string_view what, std::initializer_list<int64_t> dims) const {
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim <= 0) return Error(what, " would have a dimension of ", dim);
    if (dim > kMaxElements / elements) return Error(what, " would have more than ", kMaxElements, " elements");
    elements *= dim;
  }
  return Shape(dims);
}

absl::StatusOr<Shape> LayerBuilder::OutputShape(std::initializer_list<int64_t> dims) const {
  return CheckedShape("the output", dims);
}

absl::StatusOr<int> LayerBuilder::AddVariable(absl::string_view name, std::initializer_list<int64_t> dims,
                                              const Initializer& initializer, const Initializer& otherwise,
                                              bool trainable) {
  ASSIGN_OR_RETURN(const Shape shape, CheckedShape(absl::StrCat("variable '", name, "'"), dims));
  VariableSpec* variable = spec_->add_variables();
  variable->set_name(absl::StrCat(config_.name(), "/", name));
  variable->set_dtype(DT_FLOAT);
  for (const int64_t dim : shape.dims()) variable->add_shape(dim);
  variable->set_trainable(trainable);
  *variable->mutable_initializer() = initializer.kind_case() == Initializer::KIND_NOT_SET ? otherwise : initializer;
  return spec_->variables_size() - 1;
}

int LayerBuilder::AddMovingAverage(int variable, float decay) {
  UpdateOpSpec* update = spec_->add_update_ops();
  update->set_variable(spec_->variables(variable).name());
  update->set_kind(UpdateOpSpec::MOVING_AVERAGE);
  update->set_decay(decay);
  return spec_->update_ops_size() - 1;
}

Initializer ConstantInitializer(float value) {
  Initializer initializer;
  if (value == 0) {
    initializer.mutable_zeros();
  } else {
    initializer.mutable_constant()->set_value(value);
  }
  return initializer;
}

Initializer UniformInitializer(float min, float max) {
  Initializer initializer;
  initializer.mutable_uniform()->set_min(min);
  initializer.mutable_uniform()->set_max(max);
  return initializer;
}

Initializer GlorotUniformInitializer() {
  Initializer initializer;
  initializer.mutable_glorot();
  return initializer;
}

}  // namespace lockstep
