#ifndef LOCKSTEP_SERVER_RPC_STEP_STEP_WIRE_H_
#define LOCKSTEP_SERVER_RPC_STEP_STEP_WIRE_H_

#include "grpcpp/support/byte_buffer.h"
#include "lockstep/server/rpc/call/completion_tag.h"
#include "lockstep/server/rpc/call/incoming_call.h"

namespace lockstep {

// The transport for the messages of a Step stream on the server. One read and one write may be pending at a time. Each
// completes with an event on its tag, which is not ok if the stream has ended.
class StepWire {
 public:
  virtual ~StepWire() = default;
  // Starts a read into `message`.
  virtual void Read(grpc::ByteBuffer* message) = 0;
  virtual void Write(const grpc::ByteBuffer& message) = 0;
};

// A wire that uses the gRPC stream itself. The events come from the call's completion queue.
class GrpcStepWire : public StepWire {
 public:
  // `call` and the tags must outlive this object.
  GrpcStepWire(IncomingCall* call, CompletionTag* read, CompletionTag* written)
      : call_(call), read_(read), written_(written) {}

  void Read(grpc::ByteBuffer* message) override { call_->stream.Read(message, read_); }
  void Write(const grpc::ByteBuffer& message) override { call_->stream.Write(message, written_); }

 private:
  IncomingCall* const call_;
  CompletionTag* const read_;
  CompletionTag* const written_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_STEP_STEP_WIRE_H_
