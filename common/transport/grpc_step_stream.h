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

// A bidirectional gRPC stream of whole messages for a thread that polls it: the generic asynchronous API on a
// completion queue of its own, so that no message crosses a thread. At most one read and one write are under way. Life:
// Start, then operations and Poll, Finish at the end. For one thread, except Wake and Cancel.
class PolledStream {
 public:
  // An operation that is over and that Poll has handled. A failed operation is the last of its kind.
  enum class Event { kNone, kStarted, kRead, kWritten, kFailedRead, kFailedOther, kFinished, kWoken };

  // Calls `method` ("/package.Service/Method").
  PolledStream(std::shared_ptr<grpc::Channel> channel, const std::string& method);
  // Finish must have been called.
  ~PolledStream();

  bool started() const { return !pending(kStart); }
  bool reading() const { return pending(kRead); }
  bool writing() const { return pending(kWrite); }

  // Begins a write, once started and while no other write is under way.
  void Write(const grpc::ByteBuffer& message);
  // Begins a read, once started and while no other read is under way; the message is received() when the read is over.
  void Read();
  grpc::ByteBuffer* received() { return &received_; }

  // Waits up to `wait` for an operation to be over.
  Event Poll(absl::Duration wait);
  // Waits until nothing is under way, and returns the status with which the server ended the stream.
  absl::Status Finish();

  // Makes the Poll that waits, or the next one, return kWoken. Called at most once, from any thread.
  void Wake();
  // Breaks the stream off. Called from any thread.
  void Cancel() { context_.TryCancel(); }

 private:
  enum Operation { kStart, kRead, kWrite, kFinish, kWake, kOperations };

  // The operations' tags are the addresses of their flags.
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

// A Step stream over gRPC, polled by the worker's own thread: frames leave and replies come in only inside its calls.
// For one thread, except CancelWait and Cancel.
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

  // Transfers what it can within `wait`, and drops replies. Returns why the stream has ended; OK if it has not.
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
  bool read_failed_ = false;
  bool closed_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_GRPC_STEP_STREAM_H_
