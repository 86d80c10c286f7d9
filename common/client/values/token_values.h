#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_TOKEN_VALUES_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_TOKEN_VALUES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/common/client/values/in_process_values.h"
#include "lockstep/common/client/values/received_values.h"
#include "lockstep/common/client/values/shared_values.h"
#include "lockstep/common/client/values/variable_buffers.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The values at the step of a worker's token, whichever way they come: in the chief's replies, in memory of the chief
// that this process maps, or handed over in process. For one thread.
class TokenValues {
 public:
  // `layout` and `buffers`, where received ones lie, must outlive this. Values of trainable variables travel as `type`.
  TokenValues(const ParameterLayout* layout, v1::DataType type, VariableBuffers* buffers);

  // Takes in what a reply brings of the values, and, if it has a token, makes values() those of its step.
  // InvalidArgument when the reply contradicts the model or the token's values are not there; Unavailable when they
  // lie in memory of a process that is gone.
  absl::Status OnReply(const StepReplyFrame& reply);
  // Nobody reads values() any more.
  void Release() { received_.Release(); }

  // One for each variable, in memory of this; empty before the first token.
  absl::Span<const float* const> values() const {
    return variables_ == nullptr ? absl::Span<const float* const>() : absl::MakeConstSpan(*variables_);
  }
  // The token's values lie in the chief's memory, and it has mapped what it was offered.
  bool mapped() const { return mapped_; }

 private:
  absl::Status Take(const StepReplyFrame& reply);

  ReceivedValues received_;
  SharedValues shared_;
  InProcessValues in_process_;
  const std::vector<const float*>* variables_ = nullptr;
  bool mapped_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_TOKEN_VALUES_H_
