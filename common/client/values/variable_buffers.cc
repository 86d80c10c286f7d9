#include "lockstep/common/client/values/variable_buffers.h"

#include <algorithm>
#include <limits>

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
