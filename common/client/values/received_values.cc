#include "lockstep/common/client/values/received_values.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

std::shared_ptr<const void> SentBuffer::Hold(int64_t offset, int64_t elements) {
  held_.push_back({offset, offset + elements, std::make_shared<Owner::element_type>(memory_)});
  return held_.back().owner;
}

bool SentBuffer::IsFree(int64_t offset, int64_t elements) {
  if (held_.empty()) return true;
  const auto is_free = [](const Part& part) {
    if (part.owner.use_count() > 1) return false;
    // Dropping a reference synchronizes with the reads of earlier owners; use_count does not.
    Owner(part.owner).reset();
    return true;
  };
  held_.erase(std::remove_if(held_.begin(), held_.end(), is_free), held_.end());
  return std::none_of(held_.begin(), held_.end(), [offset, elements](const Part& part) {
    return part.begin < offset + elements && offset < part.end;
  });
}

bool SentBuffer::IsFree() { return IsFree(0, std::numeric_limits<int64_t>::max()); }

VariableBuffers::VariableBuffers(const ParameterLayout& layout, size_t element_bytes)
    : variables_(layout.variables().size()) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    const ParameterLayout::Variable& variable = layout.variables()[i];
    variables_[i].bytes =
        variable.spec.trainable() ? static_cast<size_t>(variable.elements) * element_bytes : variable.bytes();
  }
}

SentBuffer VariableBuffers::Get(int64_t variable) {
  Variable& memory = variables_[variable];
  for (SentBuffer* const buffer : {&memory.spare, &memory.sent}) {
    if (buffer->has_memory() && buffer->IsFree()) return std::exchange(*buffer, SentBuffer());
  }
  return SentBuffer(std::make_shared<AlignedBuffer>(memory.bytes));
}

SentBuffer VariableBuffers::GetForParts(int64_t variable) {
  SentBuffer& sent = variables_[variable].sent;
  return sent.has_memory() ? std::exchange(sent, SentBuffer()) : Get(variable);
}

void VariableBuffers::PutSent(int64_t variable, SentBuffer gradient) {
  SentBuffer before = std::exchange(variables_[variable].sent, std::move(gradient));
  SentBuffer& spare = variables_[variable].spare;
  if (before.has_memory() && !(spare.has_memory() && spare.IsFree())) spare = std::move(before);
}

void VariableBuffers::Put(int64_t variable, SentBuffer buffer) { variables_[variable].spare = std::move(buffer); }

ReceivedValues::ReceivedValues(const ParameterLayout* layout, v1::DataType type, VariableBuffers* buffers)
    : layout_(*layout), type_(type), buffers_(*buffers) {
  for (const auto& variable : layout_.variables()) {
    if (!variable.constant) total_elements_ += variable.elements;
  }
  constants_.resize(layout_.variables().size());
  for (Version& version : versions_) {
    version.memory.resize(layout_.variables().size());
    version.variables.resize(layout_.variables().size());
  }
}

float* ReceivedValues::Place(int64_t variable, int64_t offset, int64_t elements) {
  SentBuffer& memory = back().memory[variable];
  if (!memory.has_memory()) memory = buffers_.GetForParts(variable);
  if (!memory.IsFree(offset, elements)) {
    // The step completed without the contribution that is still being sent, so its memory cannot be overwritten.
    SentBuffer other = buffers_.Get(variable);
    std::memcpy(other.as<char>(), memory.as<char>(), layout_.variables()[variable].bytes());
    buffers_.PutSent(variable, std::exchange(memory, std::move(other)));
  }
  back().variables[variable] = memory.as<float>();
  return memory.as<float>();
}

void ReceivedValues::CopyPiece(const StepPiece& piece, float* memory) const {
  const ParameterLayout::Variable& variable = layout_.variables()[piece.variable];
  if (variable.spec.dtype() == v1::DT_FLOAT) {
    piece.content.CopyTo(0, piece.content.size(), memory + piece.offset);
  } else {
    piece.content.CopyBytes(reinterpret_cast<char*>(memory) +
                            static_cast<size_t>(piece.offset) * variable.element_bytes);
  }
}

void ReceivedValues::Flip() {
  // A faulty chief may have sent one piece twice and no piece of another variable, which must have memory nevertheless.
  const auto variables = static_cast<int64_t>(layout_.variables().size());
  for (int64_t i = 0; i < variables; ++i) {
    if (!layout_.variables()[i].constant && !back().memory[i].has_memory())
      Place(i, 0, layout_.variables()[i].elements);
  }
  front_ = 1 - front_;
  back().step = -1;
  back().received_elements = 0;
  for (int64_t i = 0; i < variables; ++i) {
    if (layout_.variables()[i].constant) continue;
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
  const v1::DataType type = variable.spec.trainable() ? type_ : variable.spec.dtype();
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

absl::Status ReceivedValues::ReceiveConstant(const StepPiece& piece) {
  const auto& variable = layout_.variables()[piece.variable];
  if (taken_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of ", variable.spec.name(), ", which is constant, while the worker computes with it"));
  }
  Constant& constant = constants_[piece.variable];
  if (constant.memory.size() == 0) {
    constant.memory = AlignedBuffer(variable.bytes());
    for (Version& version : versions_) version.variables[piece.variable] = constant.memory.as<float>();
  }
  CopyPiece(piece, constant.memory.as<float>());
  constant.received_elements += piece.content.size();
  return absl::OkStatus();
}

bool ReceivedValues::HoldsConstants() {
  if (holds_constants_) return true;
  for (size_t i = 0; i < constants_.size(); ++i) {
    const ParameterLayout::Variable& variable = layout_.variables()[i];
    if (variable.constant && constants_[i].received_elements < variable.elements) return false;
  }
  holds_constants_ = true;
  return true;
}

absl::Status ReceivedValues::Receive(int64_t step, const StepPiece& piece) {
  RETURN_IF_ERROR(CheckPiece(piece));
  if (layout_.variables()[piece.variable].constant) return ReceiveConstant(piece);
  if (back().step != step) {
    // A waiting worker may still get a token for the newest complete version while a newer one arrives.
    if (!taken_ && complete(back()) && back().step > versions_[front_].step) Flip();
    back().step = step;
    back().received_elements = 0;
  }
  const int64_t elements = piece.content.size();
  CopyPiece(piece, Place(piece.variable, piece.offset, elements));
  back().received_elements += elements;
  return absl::OkStatus();
}

absl::StatusOr<const std::vector<const float*>*> ReceivedValues::Take(int64_t step) {
  if (back().step == step && complete(back())) Flip();
  if (step < 0 || back().step == step || versions_[front_].step != step || !HoldsConstants()) {
    return absl::InvalidArgumentError(absl::StrCat("a token for step ", step, " without all values of that step"));
  }
  taken_ = true;
  return &versions_[front_].variables;
}

}  // namespace lockstep
