#ifndef LOCKSTEP_SERVER_RPC_STEP_STEP_ROUTE_H_
#define LOCKSTEP_SERVER_RPC_STEP_STEP_ROUTE_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/server/rpc/call/completion_tag.h"
#include "lockstep/server/rpc/call/incoming_call.h"
#include "lockstep/server/rpc/step/ring_step_wire.h"
#include "lockstep/server/rpc/step/step_wire.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The route of the messages of one Step stream: over gRPC at first, and through a ring when the worker's first frame
// has offered a ring that this process can map. The first message to the worker is then the answer, over gRPC; the
// worker sends nothing before it receives the answer. The stream over gRPC stays, and a read of it waits for its end.
// Thread-compatible, as a StepPump uses it; OnStreamRead is for any thread.
class StepRoute {
 public:
  struct Options {
    std::unique_ptr<IncomingCall> call;
    CompletionTag* read = nullptr;
    CompletionTag* written = nullptr;
    // Tag of the read that waits next to the ring; OnStreamRead must follow.
    CompletionTag* stream_read = nullptr;
    std::function<void(const absl::Status&)> on_broken;  // RingStepWire::Options
    Executor* executor = nullptr;
    size_t max_message_bytes = 0;
  };
  explicit StepRoute(Options options);

  IncomingCall* call() { return options_.call.get(); }

  void Read(grpc::ByteBuffer* message) { reader_->Read(message); }
  void Write(const grpc::ByteBuffer& message) { writer_->Write(message); }
  // Notes that a write is over; the first write was the answer.
  void OnWritten() { writer_ = reader_; }

  // Called before the second read and the first write. `owner` is the object that this is a part of.
  void OnOffer(const v1::SharedMemoryHandle& ring, std::shared_ptr<const void> owner);
  // Returns the answer to an offer, once: it names the ring, or nothing.
  absl::optional<v1::SharedMemoryHandle> TakeAnswer();
  void OnStreamRead() { ring_->Stop(); }

 private:
  absl::Status Connect(const v1::SharedMemoryHandle& ring, std::shared_ptr<const void> owner);

  const Options options_;
  GrpcStepWire stream_;
  std::unique_ptr<RingStepWire> ring_;
  StepWire* reader_ = &stream_;
  StepWire* writer_ = &stream_;
  absl::optional<v1::SharedMemoryHandle> answer_;
  grpc::ByteBuffer beside_;  // what comes over gRPC beside the ring: nothing
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_STEP_STEP_ROUTE_H_
