#ifndef LOCKSTEP_SERVER_RPC_STEP_CALL_H_
#define LOCKSTEP_SERVER_RPC_STEP_CALL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/client/step_frame.h"
#include "common/tensor/shared_memory.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/chief/chief.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/queue_event.h"
#include "server/rpc/visitors.h"

namespace lockstep {

// One Step stream on the server: moves frames between gRPC and a StepConnection, nothing else. A visitor until its
// first frame has named a session. Owns itself while an operation of gRPC's is pending. Operations of one stream
// complete on any thread of the queue.
class StepCall : public StepListener, public Visitor, public std::enable_shared_from_this<StepCall> {
 public:
  struct Options {
    // All must outlive the calls.
    grpc::ServerCompletionQueue* queue = nullptr;
    Chief* chief = nullptr;
    Visitors* visitors = nullptr;
    // A stream whose first frame takes longer ends.
    absl::Duration silence_limit = absl::Seconds(10);
  };

  // Serves a stream that has come.
  static void Start(const Options& options, std::unique_ptr<IncomingCall> call);

  void OnReplyReady() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnClosed(const absl::Status& why, bool at_once) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEvicted() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The end of one kind of operation.
  class Tag final : public QueueEvent {
   public:
    // `message`, which may be null, is what the operation has moved.
    Tag(StepCall* call, void (StepCall::*handle)(bool ok), grpc::ByteBuffer* message)
        : call_(call), handle_(handle), message_(message) {}
    void OnEvent(bool ok) override;
    bool IsLong() const override;

   private:
    StepCall* const call_;
    void (StepCall::*const handle_)(bool ok);
    grpc::ByteBuffer* const message_;
  };

  StepCall(const Options& options, std::unique_ptr<IncomingCall> call);

  void OnRead(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  // `expired`: the time for the first frame is over; else it came, or the stream ended.
  void OnSilent(bool expired) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnFinished(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status HandleFrame(const grpc::ByteBuffer& message, bool* leave) ABSL_LOCKS_EXCLUDED(mutex_);
  // The connection of a stream whose first frame this is.
  absl::StatusOr<std::shared_ptr<StepConnection>> Connect(const StepFrame& first) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the connection's next reply, or lets the writer rest when there is none.
  void WriteNext() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the stream, now or when the write that is under way is done.
  void Finish(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartFinish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopWriting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Before an operation is started, and after its event was handled.
  void BeginOperation() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndOperation() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::unique_ptr<IncomingCall> rpc_;
  grpc::Alarm silence_;
  // For OnRead alone.
  bool silent_ = true;
  StepFrameLimits limits_;                         // those of a first frame, then the connection's
  std::unique_ptr<SharedMemory> gradient_memory_;  // the worker's; null when it sends bytes
  // The message of the read, and of the write, that is under way or has ended last.
  grpc::ByteBuffer received_;
  grpc::ByteBuffer sent_;
  Tag read_tag_, silence_tag_, write_tag_, finish_tag_;

  Mutex mutex_;
  std::shared_ptr<StepCall> self_ ABSL_GUARDED_BY(mutex_);
  int operations_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<StepConnection> connection_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // A reply became ready while one was being written.
  bool write_again_ ABSL_GUARDED_BY(mutex_) = false;
  bool finish_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status finish_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_STEP_CALL_H_
