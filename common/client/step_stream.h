#ifndef LOCKSTEP_COMMON_CLIENT_STEP_STREAM_H_
#define LOCKSTEP_COMMON_CLIENT_STEP_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/client/gradients/frame_builder.h"
#include "lockstep/common/step/step_frame.h"

namespace lockstep {

// The worker side of a Step stream. Carries frames to the chief and its replies back, without interpreting them. Each
// data path has its own implementation. A stream is open from construction until Close or a failure. A call that
// detects the failure closes the stream and returns the reason. Not thread-safe, except for CancelWait and Cancel.
class StepStream {
 public:
  // Receives the chief's replies. The stream owns a reply's memory, which is valid only during the call.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // Returns false if the chief will send nothing more until it receives something. An error aborts the stream.
    virtual absl::StatusOr<bool> OnReply(const StepReplyFrame& reply) = 0;
    // Called when Receive would otherwise sleep. Returns true if it did some brief work and may have more. Must return
    // false eventually.
    virtual bool OnIdle() { return false; }
  };

  virtual ~StepStream() = default;

  // Returns how to split frames.
  virtual FrameSizes sizes() const = 0;

  // Queues a frame for sending, in order. Does not block. The stream holds the owners of the frame's pieces as long as
  // needed.
  virtual absl::Status Send(const StepFrame& frame) = 0;
  // Transfers what it can without blocking while frames are queued.
  virtual absl::Status Poll(Receiver* receiver) = 0;
  // Blocks until the receiver returns false, then returns true. Returns false after CancelWait.
  virtual absl::StatusOr<bool> Receive(Receiver* receiver) = 0;
  // Waits until the chief has read everything sent and has ended the stream, as it does after a leave frame. Drops
  // replies. Gives up if there is no progress.
  virtual void Drain() = 0;
  // Aborts the stream if it is open. Returns why it ended, never OK. Idempotent.
  virtual absl::Status Close() = 0;

  // Ends the current or next Receive. Thread-safe.
  virtual void CancelWait() = 0;
  // Aborts the stream; a blocked call returns Cancelled. Thread-safe.
  virtual void Cancel() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_STEP_STREAM_H_
