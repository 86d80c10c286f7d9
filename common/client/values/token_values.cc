#include "lockstep/common/client/values/token_values.h"

#include "lockstep/common/base/status_macros.h"

namespace lockstep {

TokenValues::TokenValues(const ParameterLayout* layout, v1::DataType type, VariableBuffers* buffers)
    : received_(layout, type, buffers), shared_(layout), in_process_(layout) {}

absl::Status TokenValues::OnReply(const StepReplyFrame& reply) {
  for (const StepPiece& piece : reply.values) {
    RETURN_IF_ERROR(received_.Receive(reply.values_step, piece));
  }
  return reply.token ? Take(reply) : absl::OkStatus();
}

absl::Status TokenValues::Take(const StepReplyFrame& reply) {
  mapped_ = false;
  if (reply.handed_over) {
    variables_ = in_process_.Take(*reply.handed_over);
  } else if (reply.values_memory) {
    ASSIGN_OR_RETURN(variables_, shared_.Find(*reply.values_memory));
    mapped_ = true;
  } else {
    ASSIGN_OR_RETURN(variables_, received_.Take(reply.token->step()));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
