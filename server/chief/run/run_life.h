#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_LIFE_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_LIFE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/chief/run/finish_request.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// The phase of a run in its chief's current incarnation, and what ends the run. Pure: no lock, no clock, no I/O.
//
//   phase              BeginStart  AbandonStart  Train     Finish    Fail
//   WAITING_FOR_MODEL  RESTORING   -             -         -         -
//   RESTORING          -           WAITING_...   TRAINING  FINISHED  -
//   TRAINING           -           -             -         FINISHED  FAILED
//   FINISHED, FAILED   -           -             -         -         -
//
// "-": returns false and changes nothing. A stop may be requested in every phase, and ends the run unless it is over.
class RunLife {
 public:
  v1::RunStatus::Phase phase() const { return phase_; }
  // True if the run has finished or failed.
  bool over() const { return phase_ == v1::RunStatus::FINISHED || phase_ == v1::RunStatus::FAILED; }
  // The cause of the failure; OK in all other phases. InvalidArgument if a contribution was not finite.
  const absl::Status& failure() const { return failure_; }

  // Records that the run has ended permanently: it failed, or it finished and is saved or will not be saved. Workers
  // may be notified that no other chief will continue it.
  void End(absl::Status how) { ended_ = std::move(how); }
  const absl::optional<absl::Status>& ended() const { return ended_; }

  bool BeginStart();
  bool AbandonStart();
  bool Train();
  bool Finish();
  bool Fail(absl::Status why);

  // Lets one worker at a time declare the model or the data that the run lacks. Returns Unavailable while another
  // worker is making a declaration, or once a stop has been requested.
  absl::Status BeginDeclaration();
  void EndDeclaration() { declaring_ = false; }
  bool declaring() const { return declaring_; }
  // Returns Unavailable in the same cases as BeginDeclaration.
  absl::Status CheckOpen() const;

  // Returns false if a stop was already requested, in which case the first deadline remains in effect.
  bool RequestStop(absl::Time deadline);
  // Records a worker's request to end the run. `reason` must not be empty.
  void RequestFinish(const std::string& reason) {
    if (!over()) finish_request_.Set(reason);
  }
  FinishRequest* finish_request() { return &finish_request_; }

  // Stops the run without saving anything more, because another chief has taken over the logdir or a worker has shown
  // that it is the wrong one. Only the first reason is kept.
  void Abandon(absl::Status why);
  bool stop_requested() const { return stop_requested_; }
  // Returns the reason passed to Abandon, or Cancelled after a stop was requested.
  absl::Status CheckNotStopping() const;
  // The deadline for saving the last step; infinite before a stop is requested.
  absl::Time stop_deadline() const { return stop_deadline_; }
  // The reason passed to Abandon; OK if there is none.
  const absl::Status& abandoned() const { return abandoned_; }

 private:
  bool Move(v1::RunStatus::Phase from, v1::RunStatus::Phase to);

  v1::RunStatus::Phase phase_ = v1::RunStatus::WAITING_FOR_MODEL;
  absl::Status failure_;
  absl::optional<absl::Status> ended_;
  bool declaring_ = false;
  FinishRequest finish_request_;
  bool stop_requested_ = false;
  absl::Time stop_deadline_ = absl::InfiniteFuture();
  absl::Status abandoned_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_LIFE_H_
