#ifndef LOCKSTEP_COMMON_CLIENT_GRADIENTS_GRADIENT_BUFFER_H_
#define LOCKSTEP_COMMON_CLIENT_GRADIENTS_GRADIENT_BUFFER_H_

#include <cstdint>
#include <vector>

#include "lockstep/common/client/values/sent_buffer.h"
#include "lockstep/common/client/values/variable_buffers.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// A worker's gradients, and their 16-bit form if that is how they travel. The pieces it makes refer to its memory and
// own it, so that nobody reads what is written next. For one thread; pieces may be held and dropped by any.
class GradientBuffer {
 public:
  // `layout` and `buffers` must outlive this. Gradients travel as `type`. With `shareable` they lie in memory that the
  // chief may map, where the system has such memory; all others in `buffers`.
  GradientBuffer(const ParameterLayout* layout, v1::DataType type, bool shareable, VariableBuffers* buffers);

  // Where the variable's next gradient is to be put: the same place until Sent.
  float* Variable(int variable);
  // Part of a variable's gradient as it travels; with `in_place` and while the chief's mapping is that of this memory,
  // the place where it lies.
  StepPiece Piece(int variable, int64_t offset, int64_t elements, bool in_place);
  // All pieces of the variable's gradient have been made.
  void Sent(int variable);

  // What the chief may map, to be offered with the first frame. Null when it is this process's alone.
  const v1::SharedMemoryHandle* handle() const { return shared_.handle(); }
  // The next contribution is about to be written: shared memory that a sender still holds is left to it, for good.
  void Reclaim();

 private:
  const ParameterLayout& layout_;
  const v1::DataType type_;
  VariableBuffers& buffers_;
  VariableBuffers encoded_buffers_;
  // All gradients, flat, when the chief may map them; no memory otherwise.
  SentBuffer shared_;
  // By variable, until it is sent: its gradient, unless that is shared.
  std::vector<SentBuffer> gradients_;
  // The same of what is sent in place of floats.
  std::vector<SentBuffer> encoded_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_GRADIENTS_GRADIENT_BUFFER_H_
