#ifndef LOCKSTEP_SERVER_RPC_STEP_STEP_WIRE_H_
#define LOCKSTEP_SERVER_RPC_STEP_STEP_WIRE_H_

#include "grpcpp/support/byte_buffer.h"
#include "lockstep/server/rpc/call/completion_tag.h"
#include "lockstep/server/rpc/call/incoming_call.h"

namespace lockstep {

// Transports the messages of a Step stream, on the server. One read and one write at a time may be under way; each ends
// with an event of its tag, which is not ok when there are no more.
class StepWire {
 public:
  virtual ~StepWire() = default;
  // Begins a read, which fills `message`.
  virtual void Read(grpc::ByteBuffer* message) = 0;
  virtual void Write(const grpc::ByteBuffer& message) = 0;
};

// Over the gRPC stream itself; its completion queue has the events.
class GrpcStepWire : public StepWire {
 public:
  // `call` and the tags must outlive this.
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
