#ifndef LOCKSTEP_SERVER_SYNC_STEP_CONNECTION_H_
#define LOCKSTEP_SERVER_SYNC_STEP_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/server/ps/versions/value_versions.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/server/sync/delivery/value_delivery.h"
#include "lockstep/server/sync/machine/contribution_checker.h"
#include "lockstep/server/sync/shard/staged_contribution.h"
#include "lockstep/v1/arrival.pb.h"

namespace lockstep {

class SyncReplicas;

// The listener for the events of a connection. Its functions are called without locks, and must not block.
class StepListener {
 public:
  virtual ~StepListener() = default;
  // Called when the connection may have a reply to send.
  virtual void OnReplyReady() = 0;
  // Called when a waiting frame must be passed to StepConnection::OnFrame again. Called once for each such frame,
  // possibly before OnFrame has returned.
  virtual void OnResume() = 0;
  // Called when the chief has closed the connection. The stream must end with `why` after the reply that is being sent.
  // With `at_once`, a reply that the worker has not read yet is discarded; such a call may also be made for a stream
  // that has ended.
  virtual void OnClosed(const absl::Status& why, bool at_once) = 0;
};

// The chief's end of one worker's Step stream. Created by SyncReplicas::Connect. OnFrame and NextReply may each be
// called by one thread at a time; OnFrame, NextReply and Close may run concurrently.
class StepConnection {
 public:
  // Returns the limits of a frame for the model.
  const StepFrameLimits& frame_limits() const { return frame_limits_; }
  // Handles one frame from the worker. An error ends the stream with that status and leaves the run unchanged. Sets
  // `waits` if the frame cannot be accepted yet (StepMachine::FrameStart). The caller must then pass the frame again
  // after the listener's OnResume, and must not read anything more from the worker before that.
  absl::Status OnFrame(const StepFrame& frame, bool* waits);
  // Fills in the next frame for the worker; `reply` must be empty. Returns false if there is none now; StepListener
  // says when to ask again.
  bool NextReply(StepReplyFrame* reply);
  // Counts the bytes of a reply message that is sent.
  void CountSent(int64_t bytes, WirePath path = WirePath::kTcp);
  // Return the values at the step of the last token that NextReply returned, and the estimates of top-k compression.
  std::shared_ptr<const PublishedValues> values() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return delivery_->values();
  }
  std::shared_ptr<const GradientEstimates> estimates() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return delivery_->estimates();
  }
  // Closes the connection because the stream is gone, and frees the worker's token. Idempotent. After that, the
  // listener is called only by calls that are already in progress.
  void Close();

 private:
  friend class SyncReplicas;
  struct Options {
    SyncReplicas* owner = nullptr;
    Mutex* mutex = nullptr;  // the owner's
    uint64_t session = 0;
    std::string name;
    StepFrameLimits frame_limits;
    ContributionChecker checker;
  };
  StepConnection(const Options& options, std::shared_ptr<StepListener> listener,
                 std::unique_ptr<ValueDelivery> delivery)
      : owner_(options.owner),
        mutex_(options.mutex),
        session_(options.session),
        name_(options.name),
        frame_limits_(options.frame_limits),
        checker_(options.checker),
        listener_(std::move(listener)),
        delivery_(std::move(delivery)) {}

  // Tells the thread-safety analysis that mutex_, which is the owner's lock, is held.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK(mutex_) {}
  // Returns true if the connection still has this listener, which it loses when it is closed. For the owner.
  bool HasListener(const std::shared_ptr<StepListener>& listener) const {
    AssertHeld();
    return listener_ == listener;
  }

  SyncReplicas* const owner_;
  Mutex* const mutex_;
  const uint64_t session_;
  const std::string name_;
  const StepFrameLimits frame_limits_;
  // Used only by OnFrame's thread:
  ContributionChecker checker_;
  // True if the waiting frame is the first of its contribution.
  bool begins_ = false;

  // The incoming contribution, if the policy stages it and it may count.
  std::shared_ptr<StagedContribution> staged_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<StepListener> listener_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<ValueDelivery> delivery_ ABSL_PT_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool waits_ ABSL_GUARDED_BY(mutex_) = false;  // true if a frame waits
  // GradientSettings.changes of the settings that the worker has.
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The record of the inputs with which the worker computes its token, without step and slot. Used only if arrivals are
  // recorded.
  v1::Arrival arrival_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_STEP_CONNECTION_H_
