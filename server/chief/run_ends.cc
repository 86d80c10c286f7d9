#include "lockstep/server/chief/run_ends.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

constexpr absl::Duration kGoodbyeLimit = absl::Seconds(2);
// Maximum size of the recorded reason, including the name and host of the worker that gave it, if any.
constexpr size_t kMaxReasonBytes = 1024;

}  // namespace

absl::Status RunEnds::RequestFinish(const std::string& reason, const v1::SessionState* last_state) {
  {
    MutexLock lock(&run_->mutex);
    RETURN_IF_ERROR(run_->life.CheckNotStopping());
    if (run_->training == nullptr) return absl::FailedPreconditionError("the run has no model yet");
    if (run_->life.over() && last_state == nullptr) return absl::OkStatus();
  }
  SyncReplicas* const replicas = run_->FindTraining()->sync();
  const int64_t step = replicas->HoldForChange();
  absl::Status status;
  MutexLock one_at_a_time(&run_->change_mutex);
  std::string why = reason;
  {
    MutexLock lock(&run_->mutex);
    status = run_->life.CheckNotStopping();
    // A program that leaves its loop because the run has failed does not finish the run.
    if (status.ok()) status = run_->life.failure();
    // The first request provides the reason, even if another caller carries it out.
    if (run_->life.finish_request()->pending()) why = run_->life.finish_request()->reason();
  }
  const bool early = step < replicas->total_steps() || run_->history.in_doubt();
  const std::string recorded = ToUtf8(why, kMaxReasonBytes);
  if (status.ok() && early) status = run_->history.CheckOwned();
  if (status.ok() && early) status = run_->history.EndAt(step, recorded);
  // If the end may have been recorded (Unknown), it is honored: Training::RecordEnd writes it again before the last
  // step is saved.
  const bool ends = status.ok() || absl::IsUnknown(status);
  if (ends && last_state != nullptr) {
    run_->FindTraining()->log()->SetState(last_state->step(), {last_state->hook().begin(), last_state->hook().end()});
  }
  if (ends) replicas->EndAt(step);
  replicas->ReleaseAfterChange();
  if (status.ok() && early) run_->OnEvent({RunEvent::kEndRecorded, step, "", recorded});
  if (!status.ok() && ends) run_->OnEvent({RunEvent::kEndUncertain, step, "", "", status});
  return status;
}

absl::Status RunEnds::SaveLast(Training* training) {
  absl::Status failure;
  {
    MutexLock lock(&run_->mutex);
    failure = run_->life.failure();
  }
  // After other failures the last step may be wrong: an audit found a mismatch, or a change was not recorded.
  if (!failure.ok() && !absl::IsInvalidArgument(failure)) return failure;
  const absl::Status saved = failure.ok() ? training->Save() : training->SaveIfFinite();
  // The caller needs the run's failure, so an error of the save is only logged. If the disk hangs, however, the process
  // must exit.
  if (saved.ok() || (!failure.ok() && !absl::IsDeadlineExceeded(saved))) return failure;
  const std::string done = failure.ok() ? "training is done" : std::string(failure.message());
  return absl::Status(saved.code(), absl::StrCat(done, ", but the last step could not be saved: ", saved.message()));
}

absl::Status RunEnds::FinishRun(Training* training) {
  const absl::Status status = SaveLast(training);
  {
    MutexLock lock(&run_->mutex);
    if (!run_->life.abandoned().ok()) return run_->life.abandoned();
    run_->life.End(status);
  }
  training->sync()->Finish(std::string(status.message()));
  AwaitGoodbyes(*training->sync());
  training->EndEvents();
  // If the disk hangs, does not linger, because the caller must exit the process.
  if (!absl::IsDeadlineExceeded(status) && Linger()) AwaitGoodbyes(*training->sync());
  if (status.ok()) NoteFinished();
  return status;
}

void RunEnds::EndFollowersEvents() {
  Training* training = nullptr;
  {
    MutexLock lock(&run_->mutex);
    if (!run_->life.abandoned().ok()) return;
    training = run_->training.get();
  }
  if (training != nullptr) training->EndFollowersEvents();
}

void RunEnds::NoteFinished() {
  absl::Status status = run_->history.CheckOwned();
  const int64_t step = run_->FindTraining()->sync()->step();
  const auto note = [step](v1::RunRecord* record) {
    record->set_finished(true);
    record->set_finished_step(step);
  };
  if (status.ok()) status = run_->history.Update(note);
  if (!status.ok()) run_->OnEvent({RunEvent::kEndUnrecorded, 0, "", "could not record that the run is over", status});
}

bool RunEnds::Linger() {
  const absl::Duration linger = absl::Seconds(run_->options.config.cluster().linger_seconds());
  if (linger <= absl::ZeroDuration()) return false;
  RunEvent lingers{RunEvent::kLingers};
  lingers.time = linger;
  run_->OnEvent(lingers);
  MutexLock lock(&run_->mutex);
  const absl::Time deadline = run_->options.clock->Now() + linger;
  while (!run_->life.stop_requested()) {
    if (run_->options.clock->WaitUntil(&run_->changed, &run_->mutex, deadline)) return true;
  }
  return false;
}

void RunEnds::AwaitGoodbyes(const SyncReplicas& replicas) {
  MutexLock lock(&run_->mutex);
  const absl::Time deadline = run_->options.clock->Now() + kGoodbyeLimit;
  // Also waits for workers that have just opened their sessions. If the run had already finished when the chief
  // started, waits for the first worker to look for it.
  while (!run_->sessions.AllHaveStreamed() || !replicas.idle()) {
    if (run_->options.clock->WaitUntil(&run_->changed, &run_->mutex, deadline)) return;
  }
}

absl::optional<std::string> RunEnds::AwaitFinishRequest() {
  MutexLock lock(&run_->mutex);
  while (!run_->life.over() && !run_->life.stop_requested()) {
    const FinishRequest& request = *run_->life.finish_request();
    if (!request.pending()) {
      run_->changed.Wait(&run_->mutex);
    } else if (run_->options.clock->Now() < request.due()) {
      run_->options.clock->WaitUntil(&run_->changed, &run_->mutex, request.due());
    } else {
      return request.reason();
    }
  }
  return absl::nullopt;
}

void RunEnds::CarryOutFinishRequest(const std::string& reason) {
  const absl::Status ended = RequestFinish(reason);
  bool again = false;
  {
    MutexLock lock(&run_->mutex);
    again = run_->life.finish_request()->OnTried(ended, run_->options.clock->Now());
    if (ended.ok() || absl::IsUnknown(ended) || run_->life.over()) return;
  }
  run_->OnEvent({RunEvent::kEndUnrecorded, 0, "",
                 absl::StrCat("the run continues, because its end could not be recorded", again ? " yet" : ""), ended});
}

absl::Status RunEnds::Wait() {
  while (const absl::optional<std::string> reason = AwaitFinishRequest()) CarryOutFinishRequest(*reason);
  bool over = false;
  Training* training = nullptr;
  absl::Status abandoned;
  {
    MutexLock lock(&run_->mutex);
    abandoned = run_->life.abandoned();
    over = run_->life.over();
    training = run_->training.get();
  }
  if (!abandoned.ok()) {
    // Does not notify the workers, so that they look for the chief and find its successor.
    if (training != nullptr) training->Abandon(abandoned);
    return abandoned;
  }
  if (over) return FinishRun(training);
  if (training == nullptr) return absl::CancelledError("stopped before a model was declared");
  return training->Stop();
}

void RunEnds::RequestStop() {
  MutexLock lock(&run_->mutex);
  RequestStopLocked();
}

void RunEnds::RequestStopUnlessOver() {
  MutexLock lock(&run_->mutex);
  if (!run_->life.over()) RequestStopLocked();
}

void RunEnds::RequestStopLocked() {
  const absl::Duration limit = absl::Seconds(run_->options.config.checkpoint().stop_seconds());
  if (!run_->life.RequestStop(run_->options.clock->Now() + limit)) return;
  if (run_->training != nullptr) run_->training->LimitSaves(run_->life.stop_deadline());
  run_->changed.SignalAll();
}

}  // namespace lockstep
