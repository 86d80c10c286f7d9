#ifndef LOCKSTEP_WORKER_SESSION_WORKER_PROTOCOL_H_
#define LOCKSTEP_WORKER_SESSION_WORKER_PROTOCOL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"

namespace lockstep {

// The end of a session, or of the attempt to open one.
struct SessionEnd {
  absl::Status status;
  // True if another session would end in the same way: the run is over, or the worker itself caused the error.
  bool final = false;
  // True if only the stream has ended, because the worker gave its block back. The session stays open.
  bool given_back = false;
};

// Decides what a worker does next on its Step stream. Pure: takes events and returns their effects; no lock, no clock,
// no I/O. Not thread-safe. An event that is not listed for the current phase is a bug in the caller and ends the
// program.
//
//   phase       event                                  next phase  effects
//   kClosed     OnOpen                                 kAwaiting   await a token
//   kClosed     OnOpen after a stop                    kClosed     end: Cancelled
//   kClosed     OnReopen                               as OnOpen   as OnOpen; what the heartbeats said stays known
//   kAwaiting   OnToken                                kComputing  compute; progress if a block was computed before
//   kAwaiting   OnToken after a stop                   kClosed     leave; end: Cancelled; progress as above
//   kAwaiting   OnFinished                             kClosed     leave; end, final: OK, or InvalidArgument(message)
//   kAwaiting   OnError                                kClosed     end: the error; leave after a stop
//   kAwaiting   OnError(Aborted)                       kClosed     the same; progress if a block was computed before
//   kAwaiting   OnError, the run having ended          kClosed     end, final: as OnFinished
//   kComputing  OnGivenBack                            kClosed     leave; end: Cancelled, given back
//   kComputing  OnBlock(OK)                            kAwaiting   await a token
//   kComputing  OnBlock(Cancelled) after a stop        kClosed     leave; end: Cancelled
//   kComputing  OnBlock(Cancelled), the run being over kAwaiting   await: drops the block, and learns how the run ended
//   kComputing  OnBlock(any other error)               kClosed     end: the error; final if it is the worker's own
//   kComputing  the same, the run having ended         kClosed     end, final: as OnFinished, or the worker's own error
//   any         OnHeartbeat(OK)                        same        progress, unless kComputing
//   any         OnHeartbeat(finished, or Aborted)      same        drop what is being computed
//   any         OnHeartbeat(ended)                     same        the run has ended, whatever becomes of the stream
//   any         OnReplaced                             same        drop; cancel the stream, which ends with this error
//   any         OnStop                                 same        drop; the first cancels the wait for a token, others
//   the stream
class WorkerProtocol {
 public:
  enum class Phase { kClosed, kAwaiting, kComputing };
  struct Effects {
    enum class Next { kNothing, kAwaitToken, kCompute, kEnd };
    Next next = Next::kNothing;
    // Disconnect from the chief, before `next`.
    bool leave = false;
    // The session has made progress.
    bool progress = false;
    // Abandon the block that is being computed, unless sending its contribution has begun.
    bool drop = false;
    // Call CancelWait or Cancel, respectively, on the stream.
    bool cancel_wait = false;
    bool cancel = false;
    SessionEnd end;
  };

  Effects OnOpen();
  // Handles the opening of another stream of the same session, after a block was given back.
  Effects OnReopen();
  Effects OnToken();
  // Handles the end of the run. `message` is empty if it succeeded.
  Effects OnFinished(const std::string& message);
  // Handles a failed wait for a token. If the chief itself ended the stream (Aborted, for example because it gave up
  // the step), it has received the previous block.
  Effects OnError(absl::Status status);
  // Handles a block that is given back because the program is busy, so that other workers must compute it.
  Effects OnGivenBack();
  // Handles the outcome of computing a block. `own` is true if a failure is the worker's, not the chief's or the
  // stream's.
  Effects OnBlock(absl::Status status, bool own);
  // Handles the reply to a heartbeat. `ended` is HeartbeatReply.ended.
  Effects OnHeartbeat(const absl::Status& status, bool finished,
                      const absl::optional<std::string>& ended = absl::nullopt);
  // Handles a heartbeat which shows that another chief has replaced the session's (IsChiefReplaced).
  Effects OnReplaced(absl::Status status);
  Effects OnStop();

  Phase phase() const { return phase_; }
  bool stopping() const { return stops_ > 0; }

 private:
  Effects Await();
  Effects End(absl::Status status, bool final, bool leave);
  Effects EndOfRun(const std::string& message, bool leave);

  Phase phase_ = Phase::kClosed;
  int stops_ = 0;
  // True if a heartbeat of this session reported that the run is over.
  bool finished_ = false;
  // The outcome of the run, if a heartbeat reported that it has ended permanently.
  absl::optional<std::string> ended_;
  // The error of the session, if its chief has been replaced.
  absl::optional<absl::Status> replaced_;
  // True if a block was computed since the last token.
  bool computed_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_WORKER_PROTOCOL_H_
