#ifndef LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_STREAM_H_
#define LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_STREAM_H_

#include <atomic>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/client/step_stream.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/common/transport/polled_stream.h"

namespace lockstep {

// A Step stream over gRPC, polled by the worker's own thread: frames leave and replies come in only inside its calls.
// For one thread, but for CancelWait and Cancel.
class GrpcStepStream : public StepStream {
 public:
  // A Drain in which nothing moves for `leave_limit` gives up.
  GrpcStepStream(std::shared_ptr<grpc::Channel> channel, absl::Duration leave_limit);
  ~GrpcStepStream() override;

  FrameSizes sizes() const override;
  absl::Status Send(const StepFrame& frame) override;
  absl::Status Poll(Receiver* receiver) override;
  absl::StatusOr<bool> Receive(Receiver* receiver) override;
  void Drain() override;
  absl::Status Close() override;
  void CancelWait() override;
  void Cancel() override { stream_.Cancel(); }

  // Moves what can be moved within `wait`; replies are dropped. Returns why the stream has ended, if it has.
  absl::Status Look(absl::Duration wait);

 private:
  // Writes the next frame, unless one is under way, and continues to read.
  void StartWrite();
  void StartRead();
  // Handles one operation that is over within `wait`; returns false if there is none. Replies go to `receiver`, and are
  // dropped if it is null.
  bool HandleOne(absl::Duration wait, Receiver* receiver);
  void HandleReply(Receiver* receiver);
  void Break(const char* why);

  const absl::Duration leave_limit_;
  PolledStream stream_;
  std::deque<grpc::ByteBuffer> frames_;  // to be written
  Decoded<StepReplyFrame> decoded_;      // empty unless a reply is being handled
  // True once the receiver has said that nothing more follows.
  bool paused_ = false;
  std::atomic<bool> wait_cancelled_{false};
  absl::Status status_;  // the first error
  bool broken_ = false;  // the stream ended by itself
  bool closed_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_STREAM_H_
