#include "lockstep/common/step/received_values.h"

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

ReceivedValues::ReceivedValues(const ParameterLayout* layout, v1::DataType type) : layout_(*layout), type_(type) {
  for (const auto& variable : layout_.variables()) total_elements_ += variable.elements;
  for (Version& version : versions_) {
    version.flat = AlignedBuffer(static_cast<size_t>(layout_.flat_elements()) * sizeof(float));
    for (const auto& variable : layout_.variables()) {
      version.variables.push_back(version.flat.as<float>() + variable.flat_offset);
    }
  }
}

absl::Status ReceivedValues::CheckPiece(const StepPiece& piece) const {
  if (piece.variable >= static_cast<int64_t>(layout_.variables().size())) {
    return absl::InvalidArgumentError(absl::StrCat("a value for variable number ", piece.variable));
  }
  const auto& variable = layout_.variables()[piece.variable];
  const v1::DataType type = variable.spec.trainable() ? type_ : v1::DT_FLOAT;
  if (piece.content.type() != type) {
    return absl::InvalidArgumentError(absl::StrCat("a value of ", variable.spec.name(), " is ",
                                                   NameOf(piece.content.type()), ", expected ", NameOf(type)));
  }
  if (piece.content.bytes() % piece.content.element_bytes() != 0 ||
      piece.content.size() > variable.elements - piece.offset) {
    return absl::InvalidArgumentError(absl::StrCat("a value of ", variable.spec.name(), " at element ", piece.offset,
                                                   " with ", piece.content.bytes(), " bytes"));
  }
  return absl::OkStatus();
}

absl::Status ReceivedValues::Receive(int64_t step, const StepPiece& piece) {
  RETURN_IF_ERROR(CheckPiece(piece));
  if (back().step != step) {
    // A worker that waits may yet get a token for the newest complete version, while a newer one comes in.
    if (!taken_ && complete(back()) && back().step > versions_[front_].step) front_ = 1 - front_;
    back().step = step;
    back().received_elements = 0;
  }
  const auto& variable = layout_.variables()[piece.variable];
  piece.content.CopyTo(0, piece.content.size(), back().flat.as<float>() + variable.flat_offset + piece.offset);
  back().received_elements += piece.content.size();
  return absl::OkStatus();
}

absl::StatusOr<const std::vector<const float*>*> ReceivedValues::Take(int64_t step) {
  if (back().step == step && complete(back())) front_ = 1 - front_;
  if (versions_[front_].step != step) {
    return absl::InvalidArgumentError(absl::StrCat("a token for step ", step, " without all values of that step"));
  }
  taken_ = true;
  return &versions_[front_].variables;
}

}  // namespace lockstep
