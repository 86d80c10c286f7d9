#ifndef LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_STREAM_H_
#define LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_STREAM_H_

#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/client/step_stream.h"
#include "lockstep/common/transport/codec/step_codec.h"

namespace lockstep {

// A bidirectional gRPC stream of whole messages for a thread that polls it. Uses the generic asynchronous API with its
// own completion queue, so that no message crosses threads. At most one read and one write are in progress. The
// constructor starts the stream; then start reads and writes and call Poll, and call Finish at the end. For use by one
// thread, except Wake and Cancel.
class PolledStream {
 public:
  // The completed operation that Poll reports, if any. A failed operation is the last of its kind.
  enum class Event { kNone, kStarted, kRead, kWritten, kFailedRead, kFailedOther, kFinished, kWoken };

  // Calls `method` ("/package.Service/Method").
  PolledStream(std::shared_ptr<grpc::Channel> channel, const std::string& method);
  // Requires that Finish has been called.
  ~PolledStream();

  bool started() const { return !pending(kStart); }
  bool reading() const { return pending(kRead); }
  bool writing() const { return pending(kWrite); }

  // Begins a write. The stream must have started, and no other write may be in progress.
  void Write(const grpc::ByteBuffer& message);
  // Begins a read. The stream must have started, and no other read may be in progress. When the read completes,
  // received() returns the message.
  void Read();
  grpc::ByteBuffer* received() { return &received_; }

  // Waits up to `wait` for an operation to complete.
  Event Poll(absl::Duration wait);
  // Waits until no operation is in progress. Returns the status with which the server ended the stream.
  absl::Status Finish();

  // Makes the current or next call of Poll return kWoken. May be called at most once, from any thread.
  void Wake();
  // Aborts the stream. May be called from any thread.
  void Cancel() { context_.TryCancel(); }

 private:
  enum Operation { kStart, kRead, kWrite, kFinish, kWake, kOperations };

  // The tags of operations are the addresses of their flags.
  bool pending(Operation operation) const { return pending_[operation]; }
  void* Begin(Operation operation);

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool pending_[kOperations] = {};
  grpc::Alarm alarm_;
  grpc::ByteBuffer received_;
};

// A Step stream over gRPC that the worker's own thread polls, so that frames are sent and replies received only during
// that thread's calls. For use by one thread, except CancelWait and Cancel.
class GrpcStepStream : public StepStream {
 public:
  // Drain gives up if there is no progress for `leave_limit`.
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

  // Sends and receives what it can within `wait`, and drops replies. Returns the error that ended the stream, or OK if
  // it is still open.
  absl::Status Look(absl::Duration wait);

 private:
  // Starts to write the next frame, unless a write is in progress, and continues reading.
  void StartWrite();
  void StartRead();
  // Handles one operation that completes within `wait`; returns false if none does. Passes replies to `receiver`, or
  // drops them if it is null.
  bool HandleOne(absl::Duration wait, Receiver* receiver);
  void HandleReply(Receiver* receiver);
  void Break(const char* why);

  const absl::Duration leave_limit_;
  PolledStream stream_;
  std::deque<grpc::ByteBuffer> frames_;  // waiting to be written
  Decoded<StepReplyFrame> decoded_;      // empty unless a reply is being handled
  // True while reading is paused because the receiver expects no further reply.
  bool paused_ = false;
  std::atomic<bool> wait_cancelled_{false};
  absl::Status status_;  // the first error
  bool broken_ = false;  // the stream ended by itself
  bool read_failed_ = false;
  bool closed_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_STREAM_H_
