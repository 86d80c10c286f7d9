#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_VARIABLE_BUFFERS_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_VARIABLE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/common/client/values/sent_buffer.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// The memory of a worker's values and gradients, by variable. A value is stored where its gradient was, even while
// parts of the gradient are still being sent, and the next gradient where an older value was. This needs two buffers
// per variable, and more only while a sender holds a gradient that the step did without. Buffers may outlive this. For
// one thread.
class VariableBuffers {
 public:
  // Each element takes `element_bytes`.
  VariableBuffers(const ParameterLayout& layout, size_t element_bytes);

  // Returns a buffer to overwrite as a whole. Not initialized.
  SentBuffer Get(int64_t variable);
  // Returns a buffer to overwrite part by part, each once SentBuffer::IsFree. Not initialized.
  SentBuffer GetForParts(int64_t variable);

  // Takes back a gradient after all its parts have been handed to the sender.
  void PutSent(int64_t variable, SentBuffer gradient);
  // Takes back a buffer whose content is no longer needed.
  void Put(int64_t variable, SentBuffer buffer);

 private:
  struct Variable {
    size_t bytes = 0;
    SentBuffer sent;
    SentBuffer spare;
  };
  std::vector<Variable> variables_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_VARIABLE_BUFFERS_H_
