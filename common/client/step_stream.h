#ifndef LOCKSTEP_COMMON_CLIENT_STEP_STREAM_H_
#define LOCKSTEP_COMMON_CLIENT_STEP_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/client/gradients/frame_builder.h"
#include "lockstep/common/step/step_frame.h"

namespace lockstep {

// A worker's end of a Step stream, as frames: how they get to the chief and its replies back, and nothing of what they
// mean. One implementation for each data path. Open from its construction until Close, or until it breaks; a call that
// finds it broken closes it and returns why. For one thread, but for Interrupt and Cancel.
class StepStream {
 public:
  // Takes the chief's replies. Its memory is the stream's and valid during the call.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // False: the chief sends nothing more until it is sent something. An error breaks the stream off.
    virtual absl::StatusOr<bool> OnReply(const StepReplyFrame& reply) = 0;
    // Receive has nothing to do but to sleep. True: something brief was done instead, and there may be more, but not
    // without end.
    virtual bool OnIdle() { return false; }
  };

  virtual ~StepStream() = default;

  // How frames are to be cut.
  virtual FrameSizes sizes() const = 0;

  // Hands a frame over, in order. Does not block. The stream holds the owners of its pieces for as long as it needs
  // them.
  virtual absl::Status Send(const StepFrame& frame) = 0;
  // Moves what can be moved without blocking while frames wait to be sent.
  virtual absl::Status Poll(Receiver* receiver) = 0;
  // Blocks until the receiver has returned false: true. False when Interrupt was called.
  virtual absl::StatusOr<bool> Receive(Receiver* receiver) = 0;
  // Waits until the chief has read all that was sent and has ended the stream, as it does after a frame that leaves.
  // Replies are dropped. Gives up when nothing moves.
  virtual void Drain() = 0;
  // Breaks the stream off if it is open. Returns why it ended, never OK. Idempotent.
  virtual absl::Status Close() = 0;

  // From any thread: ends Receive, the call under way or the next.
  virtual void Interrupt() = 0;
  // From any thread: breaks the stream off; what blocks returns Cancelled.
  virtual void Cancel() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_STEP_STREAM_H_
