#include "lockstep/common/client/gradients/gradient_buffer.h"

#include <memory>
#include <utility>

#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/rounding.h"

namespace lockstep {
namespace {

// Returns a buffer in memory that other processes may map, or a buffer without memory if the system cannot share any.
SentBuffer NewShared(const ParameterLayout& layout) {
  const size_t bytes = static_cast<size_t>(layout.trained_elements()) * sizeof(float);
  auto gradients = std::make_shared<AlignedBuffer>(AlignedBuffer::Shared(bytes));
  if (gradients->handle() == nullptr) return SentBuffer();
  // Without this, the first write would allocate small pages.
  if (bytes >= kHugeBuffer) gradients->Populate(0, bytes);
  return SentBuffer(std::move(gradients));
}

}  // namespace

GradientBuffer::GradientBuffer(const ParameterLayout* layout, v1::DataType type, bool shareable,
                               VariableBuffers* buffers)
    : layout_(*layout),
      type_(type),
      buffers_(*buffers),
      encoded_buffers_(layout_, sizeof(uint16_t)),
      shared_(shareable ? NewShared(layout_) : SentBuffer()),
      gradients_(layout_.variables().size()),
      encoded_(layout_.variables().size()) {}

float* GradientBuffer::Variable(int variable) {
  if (shared_.has_memory()) return shared_.as<float>() + layout_.variables()[variable].flat_offset;
  if (!gradients_[variable].has_memory()) gradients_[variable] = buffers_.Get(variable);
  return gradients_[variable].as<float>();
}

StepPiece GradientBuffer::Piece(int variable, int64_t offset, int64_t elements, bool in_place) {
  const float* const gradient = Variable(variable) + offset;
  const int64_t at = layout_.variables()[variable].flat_offset + offset;
  StepPiece piece;
  piece.variable = variable;
  piece.offset = offset;
  if (in_place && shared_.has_memory()) {
    piece.shared =
        SharedSpan{static_cast<uint64_t>(at) * sizeof(float), static_cast<uint64_t>(elements) * sizeof(float)};
  } else if (type_ == v1::DT_FLOAT) {
    piece.content = FloatChunks(gradient, elements);
    piece.owner = shared_.has_memory() ? shared_.Hold(at, elements) : gradients_[variable].Hold(offset, elements);
  } else {
    if (!encoded_[variable].has_memory()) encoded_[variable] = encoded_buffers_.Get(variable);
    uint16_t* const encoded = encoded_[variable].as<uint16_t>() + offset;
    Encode16(type_, elements, gradient, encoded);
    piece.content = FloatChunks(type_, encoded, elements);
    piece.owner = encoded_[variable].Hold(offset, elements);
  }
  return piece;
}

void GradientBuffer::Sent(int variable) {
  if (!shared_.has_memory()) buffers_.PutSent(variable, std::exchange(gradients_[variable], SentBuffer()));
  if (type_ != v1::DT_FLOAT) encoded_buffers_.PutSent(variable, std::exchange(encoded_[variable], SentBuffer()));
}

void GradientBuffer::Reclaim() {
  // Usually the sender has already released the memory, because the chief has received everything. Otherwise, leave
  // this memory to the sender.
  if (!shared_.IsFree()) shared_ = SentBuffer();
}

}  // namespace lockstep
