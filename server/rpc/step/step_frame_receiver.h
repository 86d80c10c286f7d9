#ifndef LOCKSTEP_SERVER_RPC_STEP_STEP_FRAME_RECEIVER_H_
#define LOCKSTEP_SERVER_RPC_STEP_STEP_FRAME_RECEIVER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The memory that a worker on the same machine shares with the chief and in which it puts its gradients. Initially, no
// memory is mapped. All data from the worker is checked, as for any peer. Thread-compatible.
class WorkerMemory {
 public:
  // Errors: those of SharedMemory::Map, in which case no memory is mapped.
  absl::Status Map(const v1::SharedMemoryHandle& handle);

  // Makes those gradients of `frame` that are in shared memory point into this memory. Errors: InvalidArgument if a
  // gradient lies outside it.
  absl::Status FindGradients(StepFrame* frame) const;

  bool exists() const { return memory_ != nullptr; }
  // Size in bytes; 0 if no memory is mapped.
  size_t size() const { return exists() ? memory_->size() : 0; }

 private:
  std::unique_ptr<const SharedMemory> memory_;
};

// The receiving end of one Step stream, which decodes messages and delivers frames to its StepConnection. The sender is
// unknown until Connect, so the first message must be small. Call Decode for each message, then Connect if it is the
// first one, and then Deliver. An error ends the stream. For use by one thread at a time.
class StepFrameReceiver {
 public:
  // `chief` must outlive this object. `peer` is the identity that the sender has proved, and `address` is the sender's
  // network address (Sessions).
  explicit StepFrameReceiver(Chief* chief, std::string peer = {}, std::string address = {})
      : chief_(chief), peer_(std::move(peer)), address_(std::move(address)) {}

  // Errors: ResourceExhausted if the message exceeds the stream's limits, InvalidArgument if it is malformed.
  absl::Status Decode(const grpc::ByteBuffer& message, Decoded<StepFrame>* decoded) const;
  // Opens the connection of the session that the first frame names. Errors: as for Sessions::OpenStep.
  absl::StatusOr<std::shared_ptr<StepConnection>> Connect(const StepFrame& first,
                                                          std::shared_ptr<StepListener> listener);
  // Delivers a frame. `waits` is set as in StepConnection::OnFrame. Errors: as for OnFrame, and InvalidArgument for
  // gradients outside the worker's memory.
  absl::Status Deliver(StepFrame* frame, bool* waits);

  bool connected() const { return connection_ != nullptr; }
  // True if the worker's memory is mapped.
  bool shares_memory() const { return memory_.exists(); }
  // The amount of data to process for `message`: its bytes, plus the size of the worker's memory, which may contain the
  // gradients of a short message.
  size_t WorkBytes(const grpc::ByteBuffer& message) const;

 private:
  Chief* const chief_;
  const std::string peer_;
  const std::string address_;
  std::shared_ptr<StepConnection> connection_;
  StepFrameLimits limits_;  // for the first frame; afterwards the connection's limits
  WorkerMemory memory_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_STEP_STEP_FRAME_RECEIVER_H_
