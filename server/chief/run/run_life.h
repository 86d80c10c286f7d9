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

// How far a run has come in the present life of its chief, and what ends it. Pure: no lock, no clock, no I/O.
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
  // Finished or failed.
  bool over() const { return phase_ == v1::RunStatus::FINISHED || phase_ == v1::RunStatus::FAILED; }
  // Why it failed; OK in all other phases. InvalidArgument if a contribution was not finite.
  const absl::Status& failure() const { return failure_; }

  // It is over for good: failed, or finished and saved, or not to be saved. Workers may be told that nobody comes after
  // this chief.
  void End(absl::Status how) { ended_ = std::move(how); }
  const absl::optional<absl::Status>& ended() const { return ended_; }

  bool BeginStart();
  bool AbandonStart();
  bool Train();
  bool Finish();
  bool Fail(absl::Status why);

  // One worker at a time declares what the run lacks: its model or its data. Unavailable while another one does, and
  // once a stop was requested.
  absl::Status BeginDeclaration();
  void EndDeclaration() { declaring_ = false; }
  bool declaring() const { return declaring_; }
  // Unavailable as long as BeginDeclaration is.
  absl::Status CheckOpen() const;

  // False when a stop was requested before: the first deadline stays.
  bool RequestStop(absl::Time deadline);
  // A worker wants the run to end, for this reason, which is not empty.
  void RequestFinish(const std::string& reason) {
    if (!over()) finish_request_.Set(reason);
  }
  FinishRequest* finish_request() { return &finish_request_; }

  // Stops the run, of which nothing may be saved any more: another chief has the logdir, or workers show that it is the
  // wrong one. The first reason stays.
  void Abandon(absl::Status why);
  bool stop_requested() const { return stop_requested_; }
  // The reason of Abandon, or Cancelled once a stop was requested.
  absl::Status CheckNotStopping() const;
  // By when the last step has to be saved; infinite before a stop is requested.
  absl::Time stop_deadline() const { return stop_deadline_; }
  // The reason of Abandon; OK if there is none.
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
