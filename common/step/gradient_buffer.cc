#include "lockstep/common/step/gradient_buffer.h"

#include "lockstep/common/tensor/rounding.h"

namespace lockstep {
namespace {

// What is trained gets a gradient at once, in small pages if nobody asks for others; a frozen variable that fills huge
// pages may never get one.
void ProvideTrainable(const ParameterLayout& layout, AlignedBuffer* gradients) {
  size_t begin = 0;
  size_t end = 0;
  for (const ParameterLayout::Variable& variable : layout.variables()) {
    if (!variable.spec.trainable()) continue;
    const size_t at = static_cast<size_t>(variable.flat_offset) * sizeof(float);
    if (at > end + kHugePage) {
      gradients->Populate(begin, end - begin);
      begin = at;
    }
    end = at + static_cast<size_t>(variable.elements) * sizeof(float);
  }
  gradients->Populate(begin, end - begin);
}

std::shared_ptr<AlignedBuffer> NewGradients(const ParameterLayout& layout, bool shareable) {
  const size_t bytes = static_cast<size_t>(layout.flat_elements()) * sizeof(float);
  if (!shareable) return std::make_shared<AlignedBuffer>(bytes);
  auto gradients = std::make_shared<AlignedBuffer>(AlignedBuffer::Shared(bytes));
  if (bytes >= kHugeBuffer) ProvideTrainable(layout, gradients.get());
  return gradients;
}

}  // namespace

GradientBuffer::GradientBuffer(const ParameterLayout* layout, v1::DataType type, bool shareable)
    : layout_(*layout),
      type_(type),
      gradients_(NewGradients(*layout, shareable)),
      offered_(gradients_->handle() != nullptr) {
  if (type_ == v1::DT_FLOAT) return;
  encoded_ = std::make_shared<AlignedBuffer>(static_cast<size_t>(layout_.flat_elements()) * sizeof(uint16_t));
}

float* GradientBuffer::Variable(int variable) {
  return gradients_->as<float>() + layout_.variables()[variable].flat_offset;
}

StepPiece GradientBuffer::Piece(int variable, int64_t offset, int64_t elements, bool in_place) {
  const int64_t at = layout_.variables()[variable].flat_offset + offset;
  const float* const gradient = gradients_->as<float>() + at;
  StepPiece piece;
  piece.variable = variable;
  piece.offset = offset;
  if (in_place && offered_) {
    piece.shared =
        SharedSpan{static_cast<uint64_t>(at) * sizeof(float), static_cast<uint64_t>(elements) * sizeof(float)};
  } else if (encoded_ == nullptr) {
    piece.content = FloatChunks(gradient, elements);
  } else {
    uint16_t* const encoded = encoded_->as<uint16_t>() + at;
    Encode16(type_, elements, gradient, encoded);
    piece.content = FloatChunks(type_, encoded, elements);
  }
  return piece;
}

void GradientBuffer::Reclaim() {
  std::shared_ptr<AlignedBuffer>& sent = encoded_ != nullptr ? encoded_ : gradients_;
  // Usually the sender has let go by now, since the chief has all of it; if not, it keeps the memory.
  if (sent.use_count() > 1) {
    if (sent == gradients_) offered_ = false;
    sent = std::make_shared<AlignedBuffer>(sent->size());
  }
  // Dropping a reference orders what follows after the reads of earlier owners; use_count does not.
  std::shared_ptr<AlignedBuffer>(sent).reset();
}

}  // namespace lockstep
