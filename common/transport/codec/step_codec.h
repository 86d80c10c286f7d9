#ifndef LOCKSTEP_COMMON_TRANSPORT_CODEC_STEP_CODEC_H_
#define LOCKSTEP_COMMON_TRANSPORT_CODEC_STEP_CODEC_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "lockstep/common/step/step_frame.h"

namespace lockstep {

// The Step messages as bytes: exactly the proto encoding of StepRequest and StepReply (proto/lockstep/v1/chief.proto),
// so that a generated stub can speak them, but tensors go from and to their own memory, never through a protobuf
// string. docs/wire.md has the layout.

// The gradients' memory is referenced, not copied, and held by its owners as long as gRPC needs it. Sparse pieces are
// copied.
grpc::ByteBuffer EncodeStepRequest(const StepFrame& frame);
// Like EncodeStepRequest, with the values, the estimates, and their owners in the frame.
grpc::ByteBuffer EncodeStepReply(const StepReplyFrame& frame);

// A decoded frame with the memory that its tensors lie in.
template <typename Frame>
struct Decoded {
  Frame frame;
  std::vector<grpc::Slice> slices;

  // Releases the tensors before another frame is decoded; the memory of the lists is reused.
  void Clear() {
    lockstep::Clear(&frame);
    slices.clear();
  }
};

// Errors: InvalidArgument names the field that is malformed; ResourceExhausted if the message holds more than `limits`,
// before it takes memory. Unknown fields are skipped.
absl::Status DecodeStepRequest(const grpc::ByteBuffer& buffer, const StepFrameLimits& limits,
                               Decoded<StepFrame>* decoded);
absl::Status DecodeStepReply(const grpc::ByteBuffer& buffer, Decoded<StepReplyFrame>* decoded);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CODEC_STEP_CODEC_H_
