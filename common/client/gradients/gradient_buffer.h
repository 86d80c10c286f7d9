#ifndef LOCKSTEP_COMMON_CLIENT_GRADIENTS_GRADIENT_BUFFER_H_
#define LOCKSTEP_COMMON_CLIENT_GRADIENTS_GRADIENT_BUFFER_H_

#include <cstdint>
#include <vector>

#include "lockstep/common/client/values/received_values.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// A worker's gradients, and their 16-bit encodings if they are sent in that form. Pieces refer to the buffer's memory
// and share its ownership, so a sender never sees the next gradient being written. Use it from one thread; any thread
// may hold and release pieces.
class GradientBuffer {
 public:
  // `layout` and `buffers` must outlive this object. Gradients are sent as `type`. If `shareable` is true and the
  // system supports it, they are stored in memory that the chief may map, otherwise in `buffers`.
  GradientBuffer(const ParameterLayout* layout, v1::DataType type, bool shareable, VariableBuffers* buffers);

  // Returns the buffer for the variable's next gradient. The address stays the same until Sent is called.
  float* Variable(int variable);
  // Returns part of a variable's gradient in the type in which it is sent. If `in_place` is true and the chief may map
  // this memory, the piece has the gradient's location instead of its content.
  StepPiece Piece(int variable, int64_t offset, int64_t elements, bool in_place);
  // Must be called once all pieces of the variable's gradient have been created.
  void Sent(int variable);

  // Handle of the memory that the chief may map, which is sent with the first frame. Null if the memory is private.
  const v1::SharedMemoryHandle* handle() const { return shared_.handle(); }
  // Prepares for the next contribution. Shared memory that a sender still holds is left to the sender permanently.
  void Reclaim();

 private:
  const ParameterLayout& layout_;
  const v1::DataType type_;
  VariableBuffers& buffers_;
  VariableBuffers encoded_buffers_;
  // All gradients, flat, if the chief may map them; otherwise empty.
  SentBuffer shared_;
  // Each variable's gradient until it has been sent. Unused if the gradients are shared.
  std::vector<SentBuffer> gradients_;
  // Each variable's 16-bit gradient until it is sent.
  std::vector<SentBuffer> encoded_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_GRADIENTS_GRADIENT_BUFFER_H_
