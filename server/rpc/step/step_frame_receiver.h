#ifndef LOCKSTEP_SERVER_RPC_STEP_STEP_FRAME_RECEIVER_H_
#define LOCKSTEP_SERVER_RPC_STEP_STEP_FRAME_RECEIVER_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The memory that a worker of the same machine shares with the chief, in which its gradients lie; none at first. The
// worker's statements about it are checked, as all of a peer's. Thread-compatible.
class WorkerMemory {
 public:
  // Errors: as SharedMemory::Map; there is no memory then.
  absl::Status Map(const v1::SharedMemoryHandle& handle);

  // Points the gradients of `frame` that lie in the memory to it. Errors: InvalidArgument when they lie outside.
  absl::Status FindGradients(StepFrame* frame) const;

  bool exists() const { return memory_ != nullptr; }
  // Size in bytes; 0 if there is no memory.
  size_t size() const { return exists() ? memory_->size() : 0; }

 private:
  std::unique_ptr<const SharedMemory> memory_;
};

// The receiving end of one Step stream: messages in, frames of its StepConnection out. Until Connect the sender is
// unknown, and a message may hold little. Life: Decode and Connect the first message, then Decode and Deliver each, the
// first included. An error ends the stream. For one thread at a time.
class StepFrameReceiver {
 public:
  // `chief` must outlive this.
  explicit StepFrameReceiver(Chief* chief) : chief_(chief) {}

  // Errors: ResourceExhausted when the message is larger than the stream may send, InvalidArgument when it is
  // malformed.
  absl::Status Decode(const grpc::ByteBuffer& message, Decoded<StepFrame>* decoded) const;
  // Opens the connection of the session that the first frame names. Errors: as Sessions::OpenStep.
  absl::StatusOr<std::shared_ptr<StepConnection>> Connect(const StepFrame& first,
                                                          std::shared_ptr<StepListener> listener);
  // Hands a frame over. Errors: as StepConnection::OnFrame, and InvalidArgument for gradients outside the worker's
  // memory. `waits` as there.
  absl::Status Deliver(StepFrame* frame, bool* waits);

  bool connected() const { return connection_ != nullptr; }
  // True if the worker's memory is mapped.
  bool shares_memory() const { return memory_.exists(); }
  // Size of the data that `message` stands for: its bytes, and the worker's memory, which may contain the gradients of
  // a short message.
  size_t WorkBytes(const grpc::ByteBuffer& message) const;

 private:
  Chief* const chief_;
  std::shared_ptr<StepConnection> connection_;
  StepFrameLimits limits_;  // those of a first frame, then the connection's
  WorkerMemory memory_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_STEP_STEP_FRAME_RECEIVER_H_
