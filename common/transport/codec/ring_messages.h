#ifndef LOCKSTEP_COMMON_TRANSPORT_CODEC_RING_MESSAGES_H_
#define LOCKSTEP_COMMON_TRANSPORT_CODEC_RING_MESSAGES_H_

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/memory/ring_endpoint.h"

namespace lockstep {

// These functions send and receive the messages of a gRPC stream through a ring.

// Must be followed by RingEndpoint::Flush.
void PutMessage(const grpc::ByteBuffer& message, RingEndpoint* ring);
// Like RingEndpoint::Receive, but for a gRPC message.
absl::StatusOr<bool> TakeMessage(RingEndpoint* ring, grpc::ByteBuffer* message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CODEC_RING_MESSAGES_H_
