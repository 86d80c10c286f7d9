#include "lockstep/common/client/values/variable_buffers.h"

#include <memory>
#include <utility>

namespace lockstep {

VariableBuffers::VariableBuffers(const ParameterLayout& layout, size_t element_bytes)
    : variables_(layout.variables().size()) {
  for (size_t i = 0; i < variables_.size(); ++i) {
    variables_[i].bytes = static_cast<size_t>(layout.variables()[i].elements) * element_bytes;
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

}  // namespace lockstep
