#ifndef LOCKSTEP_COMMON_CLIENT_STEP_STREAM_H_
#define LOCKSTEP_COMMON_CLIENT_STEP_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/client/gradients/frame_builder.h"
#include "lockstep/common/step/step_frame.h"

namespace lockstep {

// The worker side of a Step stream. Carries the worker's frames to the chief and the chief's replies back, without
// interpreting either. Each data path has its own implementation. A stream is open from construction until Close or a
// failure. The call that detects a failure closes the stream and returns the reason. Not thread-safe, except for
// CancelWait and Cancel.
class StepStream {
 public:
  // Receiver of the chief's replies. The stream owns a reply's memory, which is valid only during the call.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // Takes a reply. Returns false if the chief will send nothing more until the worker sends something. An error
    // aborts the stream.
    virtual absl::StatusOr<bool> OnReply(const StepReplyFrame& reply) = 0;
    // Called when Receive would otherwise sleep. Returns true if it did some brief work and may have more to do. Must
    // return false eventually.
    virtual bool OnIdle() { return false; }
  };

  virtual ~StepStream() = default;

  // Returns the limits by which to split frames.
  virtual FrameSizes sizes() const = 0;

  // Queues a frame for sending, in order. Does not block. The stream keeps the owners of the frame's pieces as long as
  // it needs them.
  virtual absl::Status Send(const StepFrame& frame) = 0;
  // While frames are queued, transfers whatever it can without blocking.
  virtual absl::Status Poll(Receiver* receiver) = 0;
  // Blocks until the receiver returns false, then returns true. Returns false after CancelWait.
  virtual absl::StatusOr<bool> Receive(Receiver* receiver) = 0;
  // Waits until the chief has read everything sent and has ended the stream, as it does after a leave frame. Drops
  // replies. Gives up if there is no progress.
  virtual void Drain() = 0;
  // Aborts the stream if it is open. Returns the reason why it ended, which is never OK. Idempotent.
  virtual absl::Status Close() = 0;

  // Ends the current or next Receive. Thread-safe.
  virtual void CancelWait() = 0;
  // Aborts the stream; a blocked call returns Cancelled. Thread-safe.
  virtual void Cancel() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_STEP_STREAM_H_
