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

// Takes tokens from a Step stream and computes their blocks until the session ends: a thin shell around WorkerProtocol,
// which decides, and BlockComputer. Run is for one thread; all else for any.
class StepLoop {
 public:
  // Returns the computer for these settings. An error of it ends the session, as the worker's own.
  using Adapter = std::function<absl::StatusOr<BlockComputer*>(const v1::GradientSettings&)>;

  struct Options {
    // Called by Run when a session has brought something.
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
  // Serves the session's next stream after SessionEnd::given_back.
  SessionEnd Resume(std::shared_ptr<StepChannel> channel, BlockComputer* computer) ABSL_LOCKS_EXCLUDED(mutex_);

  // The answer to a heartbeat of the session; returns whether it shows that the session brings something.
  bool OnHeartbeat(const absl::StatusOr<v1::HeartbeatReply>& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes Run return: at once, unless the worker prepares a batch, or has begun to send a contribution, which is ended
  // first. A second call aborts the contribution, too. Every later Run returns Cancelled.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);

  // False: what is being computed is not wanted any more.
  const std::atomic<bool>& wanted() const { return wanted_; }
  // There is a token, and the observer does not let its block be computed yet.
  bool paused() const { return paused_.load(); }

 private:
  WorkerProtocol::Effects Open(std::shared_ptr<StepChannel> channel, bool reopened) ABSL_LOCKS_EXCLUDED(mutex_);
  SessionEnd RunStream(WorkerProtocol::Effects effects, StepChannel* channel, BlockComputer* computer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  WorkerProtocol::Effects OnAssignment(const absl::StatusOr<StepChannel::Assignment>& assignment)
      ABSL_LOCKS_EXCLUDED(mutex_);
  WorkerProtocol::Effects OnBlock(const BlockComputer::Result& result) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // Replaces *computer if the assignment has settings.
  WorkerProtocol::Effects Compute(const StepChannel::Assignment& assignment, StepChannel* channel,
                                  BlockComputer** computer) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::atomic<bool> wanted_{true};
  std::atomic<bool> paused_{false};
  Mutex mutex_;
  WorkerProtocol protocol_ ABSL_GUARDED_BY(mutex_);
  // While a session is open. Shared with a stop that cancels its wait.
  std::shared_ptr<StepChannel> channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_STEP_LOOP_H_
