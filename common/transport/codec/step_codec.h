#ifndef LOCKSTEP_COMMON_TRANSPORT_CODEC_STEP_CODEC_H_
#define LOCKSTEP_COMMON_TRANSPORT_CODEC_STEP_CODEC_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "lockstep/common/step/step_frame.h"

namespace lockstep {

// Encodes and decodes the Step messages. The bytes are exactly the protobuf encoding of StepRequest and StepReply
// (proto/lockstep/v1/chief.proto), so a peer with a generated stub can read and write them. Tensors, however, go
// directly from and to their own memory, never through a protobuf string. docs/wire.md describes the layout.

// References the gradients' memory without copying it; their owners keep it alive as long as gRPC needs it. Copies
// sparse and small pieces.
grpc::ByteBuffer EncodeStepRequest(const StepFrame& frame);
// Like EncodeStepRequest, but for the values, the estimates, and their owners in the frame.
grpc::ByteBuffer EncodeStepReply(const StepReplyFrame& frame);

// A decoded frame, and the memory that holds its tensors.
template <typename Frame>
struct Decoded {
  Frame frame;
  std::vector<grpc::Slice> slices;

  // Releases the tensors, so that another frame can be decoded. Keeps the memory of the lists for reuse.
  void Clear() {
    lockstep::Clear(&frame);
    slices.clear();
  }
};

// Errors: InvalidArgument, naming the malformed field; ResourceExhausted, before any memory is allocated, if the
// message exceeds `limits`. Skips unknown fields.
absl::Status DecodeStepRequest(const grpc::ByteBuffer& buffer, const StepFrameLimits& limits,
                               Decoded<StepFrame>* decoded);
absl::Status DecodeStepReply(const grpc::ByteBuffer& buffer, Decoded<StepReplyFrame>* decoded);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CODEC_STEP_CODEC_H_
