#include "lockstep/common/tensor/parameter_layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep {
namespace {

absl::StatusOr<int64_t> CheckedElements(const v1::VariableSpec& spec) {
  if (spec.name().empty()) return absl::InvalidArgumentError("a variable has no name");
  if (!IsVariableType(spec.dtype())) {
    return absl::InvalidArgumentError(absl::StrCat("variable ", spec.name(), " has type ", NameOf(spec.dtype()),
                                                   ", must be float32, int32, int64, uint8 or bool"));
  }
  if (spec.trainable() && spec.dtype() != v1::DT_FLOAT) {
    return absl::InvalidArgumentError(absl::StrCat("variable ", spec.name(), " is trainable and has type ",
                                                   NameOf(spec.dtype()), "; only float32 is trained"));
  }
  const auto shape = Shape::Create(std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
  if (!shape.ok())
    return absl::InvalidArgumentError(absl::StrCat("variable ", spec.name(), ": ", shape.status().message()));
  if (shape->num_elements() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", spec.name(), " has shape ", shape->ToString(), "; every dimension must be positive"));
  }
  return shape->num_elements();
}

// Validates the kind and the parameters of an update op on a variable of this type.
absl::Status CheckKind(const v1::UpdateOpSpec& spec, v1::DataType dtype) {
  if (!v1::UpdateOpSpec::Kind_IsValid(spec.kind())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the update op of ", spec.variable(), " has unknown kind ", spec.kind()));
  }
  const bool averages = spec.kind() == v1::UpdateOpSpec::MOVING_AVERAGE;
  if ((averages && dtype != v1::DT_FLOAT) || (spec.kind() == v1::UpdateOpSpec::ASSIGN_ADD && dtype == v1::DT_BOOL)) {
    return absl::InvalidArgumentError(absl::StrCat("the update op of ", spec.variable(), ", which has type ",
                                                   NameOf(dtype), ", is ", v1::UpdateOpSpec::Kind_Name(spec.kind()),
                                                   averages ? "; only float32 is averaged" : ""));
  }
  if (averages && !(spec.decay() >= 0 && spec.decay() <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the moving average of ", spec.variable(), " has decay ", spec.decay(), ", not in [0, 1]"));
  }
  if (spec.zero_debias() && !averages) {
    return absl::InvalidArgumentError(absl::StrCat("the update op of ", spec.variable(), " has zero_debias, but is ",
                                                   v1::UpdateOpSpec::Kind_Name(spec.kind()),
                                                   "; only a MOVING_AVERAGE has it"));
  }
  if (spec.zero_debias() && spec.decay() == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the moving average of ", spec.variable(), " has zero_debias and decay 1, which has no average"));
  }
  return absl::OkStatus();
}

// Returns scalar state of an update op on this variable.
ParameterLayout::Variable StateOf(const ParameterLayout::Variable& variable, const char* name) {
  ParameterLayout::Variable state;
  state.spec.set_name(absl::StrCat(variable.spec.name(), "/", name));
  state.spec.set_dtype(v1::DT_FLOAT);
  state.elements = 1;
  return state;
}

}  // namespace

int64_t ParameterLayout::PaddedFloats(size_t bytes) {
  const size_t units = (bytes + kTensorAlignment - 1) / kTensorAlignment;
  return static_cast<int64_t>(units * kTensorAlignment / sizeof(float));
}

void ParameterLayout::PlaceAll() {
  PlaceIf([](const Variable& variable) { return variable.spec.trainable(); });
  trained_elements_ = flat_elements_;
  PlaceIf([](const Variable& variable) { return !variable.spec.trainable() && !variable.constant; });
  for (Variable& state : update_state_) Place(&state);
  constants_offset_ = flat_elements_;
  PlaceIf([](const Variable& variable) { return variable.constant; });
}

void ParameterLayout::PlaceIf(absl::FunctionRef<bool(const Variable&)> matches) {
  for (Variable& variable : variables_) {
    if (matches(variable)) Place(&variable);
  }
}

void ParameterLayout::Place(Variable* variable) {
  variable->flat_offset = flat_elements_;
  flat_elements_ += PaddedFloats(variable->bytes());
  for (int i = variable->first_segment; i < variable->first_segment + variable->num_segments; ++i) {
    const size_t offset = static_cast<size_t>(segments_[i].offset) * variable->element_bytes;
    segments_[i].flat_offset = variable->flat_offset + static_cast<int64_t>(offset / sizeof(float));
  }
}

void ParameterLayout::AddState(UpdateOp* op) {
  const Variable& variable = variables_[op->variable];
  op->state = static_cast<int>(update_state_.size());
  update_state_.push_back(StateOf(variable, "biased"));
  update_state_.back().elements = variable.elements;
  *update_state_.back().spec.mutable_shape() = variable.spec.shape();
  update_state_.push_back(StateOf(variable, "local_step"));
}

absl::StatusOr<ParameterLayout> ParameterLayout::Create(const v1::ModelSpec& model) {
  ParameterLayout layout;
  absl::flat_hash_map<std::string, int> index;
  int64_t total = 0;  // elements so far, including padding
  for (const v1::VariableSpec& spec : model.variables()) {
    ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(spec));
    Variable variable;
    variable.spec = spec;
    variable.constant = !spec.trainable();  // unless an update op names it
    variable.elements = elements;
    variable.element_bytes = SizeOf(spec.dtype());
    // The first condition prevents an overflow of the size.
    if (elements > kMaxElements || PaddedFloats(variable.bytes()) > kMaxElements - total) {
      return absl::InvalidArgumentError(absl::StrCat("with variable ", spec.name(), " of ", elements,
                                                     " elements the model has more than ", kMaxElements));
    }
    if (!index.emplace(spec.name(), static_cast<int>(layout.variables_.size())).second) {
      return absl::InvalidArgumentError(absl::StrCat("two variables are named ", spec.name()));
    }
    total += PaddedFloats(variable.bytes());
    variable.first_segment = static_cast<int>(layout.segments_.size());
    for (int64_t offset = 0; offset < elements; offset += kSegmentElements) {
      layout.segments_.push_back({static_cast<int>(layout.variables_.size()), offset, /*flat_offset=*/0,
                                  std::min(kSegmentElements, elements - offset)});
    }
    variable.num_segments = static_cast<int>(layout.segments_.size()) - variable.first_segment;
    if (spec.trainable()) layout.num_trainable_segments_ += variable.num_segments;
    layout.variables_.push_back(std::move(variable));
  }
  if (layout.num_trainable_segments_ == 0) return absl::InvalidArgumentError("the model has no trainable variable");
  for (const v1::UpdateOpSpec& spec : model.update_ops()) {
    const auto it = index.find(spec.variable());
    if (it == index.end()) {
      return absl::InvalidArgumentError(absl::StrCat("an update op names the unknown variable ", spec.variable()));
    }
    if (layout.variables_[it->second].spec.trainable()) {
      return absl::InvalidArgumentError(
          absl::StrCat("an update op names the trainable variable ", spec.variable(), "; only gradients change those"));
    }
    RETURN_IF_ERROR(CheckKind(spec, layout.variables_[it->second].spec.dtype()));
    layout.update_ops_.push_back({spec, it->second});
    layout.variables_[it->second].constant = false;
    if (spec.zero_debias()) layout.AddState(&layout.update_ops_.back());
  }
  for (const Variable& state : layout.update_state_) {
    if (!index.emplace(state.spec.name(), -1).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("an update op with zero_debias keeps its state as ", state.spec.name(),
                       ", which is the name of a variable or of the state of another update op"));
    }
    if (PaddedFloats(state.bytes()) > kMaxElements - total) {
      return absl::InvalidArgumentError(absl::StrCat("with ", state.spec.name(), " of ", state.elements,
                                                     " elements the model has more than ", kMaxElements));
    }
    total += PaddedFloats(state.bytes());
  }
  layout.PlaceAll();
  return layout;
}

}  // namespace lockstep
