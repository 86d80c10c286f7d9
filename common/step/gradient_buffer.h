#ifndef LOCKSTEP_COMMON_STEP_GRADIENT_BUFFER_H_
#define LOCKSTEP_COMMON_STEP_GRADIENT_BUFFER_H_

#include <cstdint>
#include <memory>

#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// A worker's gradients, flat, and their 16-bit form if that is how they travel. The pieces it makes refer to its
// memory, which the sender keeps alive through `sent`; Reclaim makes sure that nobody reads what is written next. For
// one thread; `sent` may be held and dropped by any.
class GradientBuffer {
 public:
  // `layout` must outlive this. Gradients travel as `type`. With `shareable` they lie in memory that the chief may map,
  // where the system has such memory.
  GradientBuffer(const ParameterLayout* layout, v1::DataType type, bool shareable);

  float* Variable(int variable);
  // Part of a variable's gradient as it travels; with `in_place` and while the chief's mapping is that of this memory,
  // the place where it lies.
  StepPiece Piece(int variable, int64_t offset, int64_t elements, bool in_place);

  // What the chief may map, to be offered with the first frame. Null when it is this process's alone.
  const v1::SharedMemoryHandle* handle() const { return gradients_->handle(); }
  // Keeps the memory of the pieces.
  std::shared_ptr<const void> sent() const { return encoded_ != nullptr ? encoded_ : gradients_; }
  // The next contribution is about to be written: memory that a sender still holds is left to it, and replaced.
  void Reclaim();

 private:
  const ParameterLayout& layout_;
  const v1::DataType type_;
  std::shared_ptr<AlignedBuffer> gradients_;
  std::shared_ptr<AlignedBuffer> encoded_;  // null when they travel as floats
  // `gradients_` is the memory that the chief was offered.
  bool offered_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_GRADIENT_BUFFER_H_
