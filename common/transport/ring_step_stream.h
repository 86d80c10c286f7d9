#ifndef LOCKSTEP_COMMON_TRANSPORT_RING_STEP_STREAM_H_
#define LOCKSTEP_COMMON_TRANSPORT_RING_STEP_STREAM_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/common/client/step_stream.h"
#include "lockstep/common/memory/ring_endpoint.h"
#include "lockstep/common/transport/grpc_step_stream.h"

namespace lockstep {

// A Step stream of a worker on the chief's machine. It opens and ends like a stream over gRPC, but in between its
// frames go through rings in shared memory. If the first frame offers no gradient memory, or the chief does not accept
// a ring, everything goes over gRPC. For use by one thread, except CancelWait and Cancel.
class RingStepStream : public StepStream {
 public:
  // `stream` must not have been used yet. Drain gives up if there is no progress for `leave_limit`.
  RingStepStream(std::unique_ptr<GrpcStepStream> stream, absl::Duration leave_limit);
  ~RingStepStream() override;

  FrameSizes sizes() const override { return stream_->sizes(); }
  absl::Status Send(const StepFrame& frame) override;
  absl::Status Poll(Receiver* receiver) override;
  absl::StatusOr<bool> Receive(Receiver* receiver) override;
  void Drain() override;
  absl::Status Close() override;
  void CancelWait() override;
  void Cancel() override;

 private:
  // The path that frames take. kNew: nothing has been sent. kOffered: a ring has been offered, and the chief has not
  // answered yet. kStream and kRing: the path that the chief has chosen.
  enum class Path { kNew, kOffered, kStream, kRing };

  absl::Status Offer(const StepFrame& first);
  // Waits for the chief's answer. Returns false if the wait was cancelled, or if the chief sent a token without an
  // answer.
  absl::StatusOr<bool> AwaitAnswer(Receiver* receiver);
  absl::StatusOr<bool> ReceiveFromRing(Receiver* receiver);
  // Passes the next reply to the receiver, and sets `more` to the receiver's result. Returns false if there is no
  // reply.
  absl::StatusOr<bool> TakeReply(Receiver* receiver, bool* more);
  // Returns true if everything queued for sending has been sent.
  absl::StatusOr<bool> Flush();
  // Records a ring error and closes the stream.
  absl::Status Break(const absl::Status& why);

  const absl::Duration leave_limit_;
  const std::unique_ptr<GrpcStepStream> stream_;
  const std::unique_ptr<RingEndpoint> ring_;  // null if the system provides no memory
  Path path_ = Path::kNew;
  std::atomic<bool> wait_cancelled_{false}, cancelled_{false};
  absl::Status status_;  // the error of the ring
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_RING_STEP_STREAM_H_
