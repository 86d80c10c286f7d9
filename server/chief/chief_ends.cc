// How a run ends: by its last step, a failure, somebody's wish, or a stop of the chief.
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

constexpr absl::Duration kGoodbyeLimit = absl::Seconds(2);
// Of the reason on record: that of a worker, its name and host are within.
constexpr size_t kMaxReasonBytes = 1024;

}  // namespace

absl::Status Chief::End(const std::string& reason, const v1::SessionState* last_state) {
  {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(life_.CheckNotStopping());
    if (training_ == nullptr) return absl::FailedPreconditionError("the run has no model yet");
    if (life_.over() && last_state == nullptr) return absl::OkStatus();
  }
  SyncReplicas* const replicas = training()->sync();
  const int64_t step = replicas->HoldForChange();
  absl::Status status;
  MutexLock one_at_a_time(&change_mutex_);
  std::string why = reason;
  {
    MutexLock lock(&mutex_);
    status = life_.CheckNotStopping();
    // Who asked first is the reason, whoever carries it out.
    if (life_.end_wish()->wanted()) why = life_.end_wish()->reason();
  }
  const bool early = step < replicas->total_steps() || history_.in_doubt();
  const std::string recorded = ToUtf8(why, kMaxReasonBytes);
  if (status.ok() && early) status = history_.CheckOwned();
  if (status.ok() && early) status = history_.EndAt(step, recorded);
  // An end that may be on record is kept to: before the last step is saved, Training::RecordEnd writes it again.
  const bool ends = status.ok() || absl::IsUnknown(status);
  if (ends && last_state != nullptr) {
    training()->log()->SetState(last_state->step(), {last_state->hook().begin(), last_state->hook().end()});
  }
  if (ends) replicas->EndAt(step);
  replicas->ReleaseAfterChange();
  if (status.ok() && early) OnEvent({RunEvent::kEndRecorded, step, "", recorded});
  if (!status.ok() && ends) LOG(WARNING) << status.message();
  return status;
}

absl::Status Chief::FinishRun(Training* training) {
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = life_.failure();
  }
  if (status.ok()) {
    status = training->Save();
    MutexLock lock(&mutex_);
    if (!life_.lost_logdir().ok()) return life_.lost_logdir();
    if (!status.ok()) {
      status = absl::Status(status.code(),
                            absl::StrCat("training is done, but the last step could not be saved: ", status.message()));
    }
  }
  {
    MutexLock lock(&mutex_);
    life_.End(status);
  }
  training->sync()->Finish(std::string(status.message()));
  AwaitGoodbyes(*training->sync());
  training->EndEvents();
  if (status.ok() && Linger()) AwaitGoodbyes(*training->sync());
  if (status.ok()) NoteFinished();
  return status;
}

void Chief::EndFollowersEvents() {
  Training* training = nullptr;
  {
    MutexLock lock(&mutex_);
    if (!life_.lost_logdir().ok()) return;
    training = training_.get();
  }
  if (training != nullptr) training->EndFollowersEvents();
}

void Chief::NoteFinished() {
  absl::Status status = history_.CheckOwned();
  if (status.ok()) status = history_.Update([](v1::RunRecord* record) { record->set_finished(true); });
  LOG_IF(ERROR, !status.ok()) << "that the run is over could not be recorded: " << status.message();
}

bool Chief::Linger() {
  const absl::Duration linger = absl::Seconds(options_.config.cluster().linger_seconds());
  if (linger <= absl::ZeroDuration()) return false;
  LOG(INFO) << "the run is over; workers that start within " << absl::FormatDuration(linger) << " still learn of it";
  MutexLock lock(&mutex_);
  const absl::Time deadline = options_.clock->Now() + linger;
  while (!life_.stop_requested()) {
    if (options_.clock->WaitUntil(&changed_, &mutex_, deadline)) return true;
  }
  return false;
}

void Chief::AwaitGoodbyes(const SyncReplicas& replicas) {
  MutexLock lock(&mutex_);
  const absl::Time deadline = options_.clock->Now() + kGoodbyeLimit;
  // Also notifies a worker that has just opened its session, and the first that looks for a run which was finished
  // before.
  while (!sessions_.AllHaveStreamed() || !replicas.idle()) {
    if (options_.clock->WaitUntil(&changed_, &mutex_, deadline)) return;
  }
}

absl::Status Chief::Wait() {
  bool over = false;
  Training* training = nullptr;
  absl::Status lost;
  {
    MutexLock lock(&mutex_);
    while (!life_.over() && !life_.stop_requested()) {
      EndWish* const wish = life_.end_wish();
      if (!wish->wanted()) {
        changed_.Wait(&mutex_);
        continue;
      }
      if (options_.clock->Now() < wish->due()) {
        options_.clock->WaitUntil(&changed_, &mutex_, wish->due());
        continue;
      }
      const std::string reason = wish->reason();
      mutex_.Unlock();
      const absl::Status ended = End(reason);
      mutex_.Lock();
      const bool again = wish->OnTried(ended, options_.clock->Now());
      if (ended.ok() || absl::IsUnknown(ended)) continue;
      mutex_.Unlock();  // nothing is logged under a lock
      LOG(ERROR) << "the run goes on, its end could not be recorded" << (again ? " yet" : "") << ": "
                 << ended.message();
      mutex_.Lock();
    }
    lost = life_.lost_logdir();
    over = life_.over();
    training = training_.get();
  }
  if (!lost.ok()) {
    // Workers are not notified: they look for the chief and find its successor.
    if (training != nullptr) training->Abandon(lost);
    return lost;
  }
  if (over) return FinishRun(training);
  if (training == nullptr) return absl::CancelledError("stopped before a model was declared");
  return training->Stop();
}

void Chief::RequestStop() {
  MutexLock lock(&mutex_);
  const absl::Duration limit = absl::Seconds(options_.config.checkpoint().stop_seconds());
  if (!life_.RequestStop(options_.clock->Now() + limit)) return;
  if (training_ != nullptr) training_->LimitSaves(life_.stop_deadline());
  changed_.SignalAll();
}

}  // namespace lockstep
