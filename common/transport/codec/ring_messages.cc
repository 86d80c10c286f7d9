#include "lockstep/common/transport/codec/ring_messages.h"

#include <string>
#include <vector>

#include "glog/logging.h"
#include "grpcpp/support/slice.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

void PutMessage(const grpc::ByteBuffer& message, RingEndpoint* ring) {
  std::vector<grpc::Slice> slices;
  if (message.Valid()) CHECK(message.Dump(&slices).ok());
  ring->BeginMessage(message.Length());
  for (const grpc::Slice& slice : slices) {
    ring->Append({reinterpret_cast<const char*>(slice.begin()), slice.size()});
  }
}

absl::StatusOr<bool> TakeMessage(RingEndpoint* ring, grpc::ByteBuffer* message) {
  std::string bytes;
  ASSIGN_OR_RETURN(const bool taken, ring->Receive(&bytes));
  if (!taken) return false;
  const grpc::Slice slice(bytes);
  *message = grpc::ByteBuffer(&slice, 1);
  return true;
}

}  // namespace lockstep
