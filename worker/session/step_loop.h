#ifndef LOCKSTEP_WORKER_SESSION_STEP_LOOP_H_
#define LOCKSTEP_WORKER_SESSION_STEP_LOOP_H_

#include <atomic>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/worker/session/block/block_computer.h"
#include "lockstep/worker/session/block/block_observer.h"
#include "lockstep/worker/session/worker_protocol.h"

namespace lockstep {

// A loop that takes tokens from a Step stream and computes their blocks until the session ends. It is a thin shell
// around WorkerProtocol, which makes the decisions, and BlockComputer. Only one thread may call Run and Resume. Any
// thread may call the other methods.
class StepLoop {
 public:
  // Returns the BlockComputer for these settings. An error ends the session like an error of the worker itself.
  using Adapter = std::function<absl::StatusOr<BlockComputer*>(const v1::GradientSettings&)>;

  struct Options {
    // Called by Run when a session has made progress.
    std::function<void()> on_progress;
    // Called by Run with the step of each token; may be null.
    std::function<void(int64_t step)> on_step;
    // Called by Run when a token has settings.
    Adapter adapt;
    // May be null.
    BlockObserver* observer = nullptr;
  };
  explicit StepLoop(Options options);

  // Serves a session's stream until it ends. `goes_on` is passed to BlockObserver::OnSession.
  SessionEnd Run(std::shared_ptr<StepChannel> channel, BlockComputer* computer, bool goes_on = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Serves the session's next stream after Run or Resume has returned with SessionEnd::given_back.
  SessionEnd Resume(std::shared_ptr<StepChannel> channel, BlockComputer* computer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Handles the reply to one of the session's heartbeats. Returns true if it shows that the session makes progress.
  bool OnHeartbeat(const absl::StatusOr<v1::HeartbeatReply>& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes Run return. Run returns immediately unless the worker is preparing a batch or has begun to send a
  // contribution; it finishes either of these first. A second call also aborts sending the contribution. Every later
  // call of Run returns Cancelled.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns a flag that is false if the block being computed is no longer wanted.
  const std::atomic<bool>& wanted() const { return wanted_; }
  // Returns true if there is a token whose block the observer is holding back.
  bool paused() const { return paused_.load(); }

 private:
  WorkerProtocol::Effects Open(std::shared_ptr<StepChannel> channel, bool reopened) ABSL_LOCKS_EXCLUDED(mutex_);
  SessionEnd RunStream(WorkerProtocol::Effects effects, StepChannel* channel, BlockComputer* computer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  WorkerProtocol::Effects OnAssignment(const absl::StatusOr<StepChannel::Assignment>& assignment)
      ABSL_LOCKS_EXCLUDED(mutex_);
  WorkerProtocol::Effects OnBlock(const BlockComputer::Result& result) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // Computes an assignment. If it has settings, first replaces *computer by the one for these settings.
  WorkerProtocol::Effects Compute(const StepChannel::Assignment& assignment, StepChannel* channel,
                                  BlockComputer** computer) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::atomic<bool> wanted_{true};
  std::atomic<bool> paused_{false};
  Mutex mutex_;
  WorkerProtocol protocol_ ABSL_GUARDED_BY(mutex_);
  // Set while a session is open. Shared, because a stop cancels the channel's wait from another thread.
  std::shared_ptr<StepChannel> channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_STEP_LOOP_H_
