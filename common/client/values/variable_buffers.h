#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_VARIABLE_BUFFERS_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_VARIABLE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/common/client/values/sent_buffer.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// The memory of a worker's values and gradients, variable by variable. A value comes to lie where the gradient that led
// to it has been, even while parts of that are still being sent, and the next gradient where an older value was: two
// buffers for each variable, and others only while a sender holds what nobody waited for. What it has given out
// may outlive it. For one thread.
class VariableBuffers {
 public:
  // Of `element_bytes` for each element.
  VariableBuffers(const ParameterLayout& layout, size_t element_bytes);

  // To be written as a whole. Not initialized.
  SentBuffer Get(int64_t variable);
  // To be written part by part: each where SentBuffer::IsFree. Not initialized.
  SentBuffer GetForParts(int64_t variable);

  // All of a gradient's parts have been handed to the sender.
  void PutSent(int64_t variable, SentBuffer gradient);
  // Nobody needs what is in it.
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
