#include "lockstep/common/client/values/received_values.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

ReceivedValues::ReceivedValues(const ParameterLayout* layout, v1::DataType type, VariableBuffers* buffers)
    : layout_(*layout), type_(type), buffers_(*buffers) {
  for (const auto& variable : layout_.variables()) total_elements_ += variable.elements;
  for (Version& version : versions_) {
    version.memory.resize(layout_.variables().size());
    version.variables.resize(layout_.variables().size());
  }
}

float* ReceivedValues::Place(int64_t variable, int64_t offset, int64_t elements) {
  SentBuffer& memory = back().memory[variable];
  if (!memory.has_memory()) memory = buffers_.GetForParts(variable);
  if (!memory.IsFree(offset, elements)) {
    // This step completed without the contribution that is still being sent.
    SentBuffer other = buffers_.Get(variable);
    std::copy_n(memory.as<float>(), layout_.variables()[variable].elements, other.as<float>());
    buffers_.PutSent(variable, std::exchange(memory, std::move(other)));
  }
  back().variables[variable] = memory.as<float>();
  return memory.as<float>() + offset;
}

void ReceivedValues::Flip() {
  // A chief may have sent one piece twice and no piece of another variable.
  const auto variables = static_cast<int64_t>(layout_.variables().size());
  for (int64_t i = 0; i < variables; ++i) {
    if (!back().memory[i].has_memory()) Place(i, 0, layout_.variables()[i].elements);
  }
  front_ = 1 - front_;
  back().step = -1;
  back().received_elements = 0;
  for (int64_t i = 0; i < variables; ++i) {
    SentBuffer old = std::exchange(back().memory[i], SentBuffer());
    if (old.has_memory()) buffers_.Put(i, std::move(old));
    back().variables[i] = nullptr;
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
    // A waiting worker may still get a token for the newest complete version while a newer one arrives.
    if (!taken_ && complete(back()) && back().step > versions_[front_].step) Flip();
    back().step = step;
    back().received_elements = 0;
  }
  const int64_t elements = piece.content.size();
  piece.content.CopyTo(0, elements, Place(piece.variable, piece.offset, elements));
  back().received_elements += elements;
  return absl::OkStatus();
}

absl::StatusOr<const std::vector<const float*>*> ReceivedValues::Take(int64_t step) {
  if (back().step == step && complete(back())) Flip();
  if (step < 0 || back().step == step || versions_[front_].step != step) {
    return absl::InvalidArgumentError(absl::StrCat("a token for step ", step, " without all values of that step"));
  }
  taken_ = true;
  return &versions_[front_].variables;
}

}  // namespace lockstep
