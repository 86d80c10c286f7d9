#ifndef LOCKSTEP_SERVER_RPC_STEP_STEP_CALL_H_
#define LOCKSTEP_SERVER_RPC_STEP_STEP_CALL_H_

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/rpc/call/call_peer.h"
#include "lockstep/server/rpc/call/completion_tag.h"
#include "lockstep/server/rpc/call/incoming_call.h"
#include "lockstep/server/rpc/call/revocable_call.h"
#include "lockstep/server/rpc/call/unauthenticated_calls.h"
#include "lockstep/server/rpc/step/ring_step_wire.h"
#include "lockstep/server/rpc/step/step_frame_receiver.h"
#include "lockstep/server/rpc/step/step_pump.h"
#include "lockstep/server/rpc/step/step_wire.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Routes the messages of one Step stream. At first, messages travel over gRPC. If the worker's first frame offers a
// ring that this process can map, later messages travel through the ring, except for the reply to the offer: it is the
// first message to the worker and travels over gRPC, and the worker sends nothing until it has received it. The gRPC
// stream stays open, with a pending read that detects its end. Thread-compatible, as a StepPump uses it. OnStreamRead
// may be called on any thread.
class StepRoute {
 public:
  struct Options {
    std::unique_ptr<IncomingCall> call;
    CompletionTag* read = nullptr;
    CompletionTag* written = nullptr;
    // Tag of the read that stays pending on the gRPC stream while the ring is in use. OnStreamRead must be called when
    // the read completes.
    CompletionTag* stream_read = nullptr;
    std::function<void(const absl::Status&)> on_broken;  // RingStepWire::Options
    Executor* executor = nullptr;
    size_t max_message_bytes = 0;
  };
  explicit StepRoute(Options options);

  IncomingCall* call() { return options_.call.get(); }

  void Read(grpc::ByteBuffer* message) { reader_->Read(message); }
  void Write(const grpc::ByteBuffer& message) { writer_->Write(message); }
  // Records that a write has finished. If there is a ring, the first write was the reply to the offer, and later writes
  // use the ring.
  void OnWritten() { writer_ = reader_; }

  // Called before the second read and the first write. `owner` is the object that contains this one.
  void OnOffer(const v1::SharedMemoryHandle& ring, std::shared_ptr<const void> owner);
  // Returns the reply to an offer, but only once. The reply names the ring, or is an empty handle if no ring is used.
  absl::optional<v1::SharedMemoryHandle> TakeAnswer();
  void OnStreamRead() { ring_->Stop(); }
  // Returns the path of the messages, except of the offer and its answer.
  WirePath path() const { return ring_ != nullptr ? WirePath::kRing : stream_path_; }
  WirePath stream_path() const { return stream_path_; }

 private:
  absl::Status Connect(const v1::SharedMemoryHandle& ring, std::shared_ptr<const void> owner);

  const Options options_;
  const WirePath stream_path_;
  GrpcStepWire stream_;
  std::unique_ptr<RingStepWire> ring_;
  StepWire* reader_ = &stream_;
  StepWire* writer_ = &stream_;
  absl::optional<v1::SharedMemoryHandle> answer_;
  grpc::ByteBuffer beside_;  // for the read on the stream, which receives nothing
};

// A Step stream on the server. Carries out the effects of its StepPump, using gRPC's operations on one side and a
// StepConnection on the other. Unauthenticated until its first frame has named a session. Owns itself until the pump
// reports `over`. Called by any thread of the queue for each operation that completes, by the thread of a ring, and by
// the chief's threads as a listener. The lock is held while the timer is set or cancelled, but not during any other
// effect.
class StepCall : public StepListener,
                 public EvictableCall,
                 public RevocableCall,
                 public std::enable_shared_from_this<StepCall> {
 public:
  struct Options {
    // These three must outlive the calls.
    grpc::ServerCompletionQueue* queue = nullptr;
    Chief* chief = nullptr;
    UnauthenticatedCalls* unauthenticated_calls = nullptr;
    // A stream is ended if its first frame takes longer than this. After a stream has ended, its call is cancelled if a
    // reply stays unread for longer.
    absl::Duration silence_limit = absl::Seconds(10);
    // Maximum size of a message that arrives through a ring instead of gRPC, in bytes.
    size_t max_message_bytes = 0;
    Executor* executor = Executor::Threads();
    // Called with each new call, so that the call can be revoked once its peer is no longer trusted.
    std::function<void(const CallPeer& peer, std::weak_ptr<RevocableCall> call)> watch;
  };

  // Starts to serve a stream that has arrived.
  static void Start(const Options& options, std::unique_ptr<IncomingCall> call);

  void OnReplyReady() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnResume() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnClosed(const absl::Status& why, bool at_once) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEvicted() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnRevoked(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_) { OnClosed(why, /*at_once=*/true); }

 private:
  // kStreamRead is the read that stays pending on the gRPC stream while messages use a ring.
  enum Operation { kTimer, kPause, kRead, kWrite, kFinish, kStreamRead, kWake, kNumOperations };

  // The tag of an operation.
  class Tag final : public CompletionTag {
   public:
    Tag(StepCall* call, Operation operation) : call_(call), operation_(operation) {}
    void OnEvent(bool ok) override { call_->OnOperationEnded(operation_, ok); }
    bool IsLong() const override { return call_->IsLong(operation_); }

   private:
    StepCall* const call_;
    const Operation operation_;
  };

  StepCall(const Options& options, std::unique_ptr<IncomingCall> call);
  StepRoute::Options RouteOptions(std::unique_ptr<IncomingCall> call);

  void OnOperationEnded(Operation operation, bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsLong(Operation operation) const;
  // Passes the event to the pump and carries out its effects.
  void Pump(absl::FunctionRef<StepPump::Effects(StepPump*)> event) ABSL_LOCKS_EXCLUDED(mutex_);
  void CarryOut(const StepPump::Effects& effects, StepConnection* connection);
  void OnStreamRead(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleFrame() ABSL_LOCKS_EXCLUDED(mutex_);
  // `waits` is as in StepConnection::OnFrame.
  absl::Status TakeFrame(StepPump::Next* next, bool* waits) ABSL_LOCKS_EXCLUDED(mutex_);
  void FetchReply(StepConnection* connection) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::array<Tag, kNumOperations> tags_;
  // Not guarded by mutex_: the pump decides which of its operations are pending.
  StepRoute route_;
  grpc::Alarm wake_;            // for a waiting frame; set by the thread that makes room
  grpc::Alarm pause_;           // set by the thread that has handled a frame
  StepFrameReceiver receiver_;  // accessed between a read and the next
  Decoded<StepFrame> decoded_;  // likewise; empty unless a frame is being handled
  grpc::ByteBuffer received_;   // accessed by the pending read, then by its handler
  grpc::ByteBuffer sent_;       // accessed by the thread that fetches a reply, then by the pending write

  Mutex mutex_;
  StepPump pump_ ABSL_GUARDED_BY(mutex_);
  grpc::Alarm timer_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<StepConnection> connection_ ABSL_GUARDED_BY(mutex_);
  // Keeps this object alive until the pump reports `over`.
  std::shared_ptr<StepCall> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_STEP_STEP_CALL_H_
