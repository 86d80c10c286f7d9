#include "lockstep/server/process/chief_process.h"

#include <utility>

#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/chief/run/run_directory.h"

namespace lockstep {
namespace {

constexpr absl::Duration kPredecessorPeriod = absl::Milliseconds(50);

}  // namespace

ChiefProcess::ChiefProcess(Options options) : options_(std::move(options)) {
  if (!options_.watch_signals) return;
  // While there is no chief, as when a large checkpoint is restored, all that there is lies on the disk.
  const absl::Duration limit = absl::Seconds(options_.chief.config.checkpoint().stop_seconds()) + kEndingLimit;
  TerminationWatch::Options watch;
  watch.on_stop = [this] { RequestStop(); };
  watch.on_save = [this] { RequestSave(); };
  watch.second_exit_code = [this] { return second_exit_code_.load(); };
  watch.limit = [limit] { return limit; };
  watch_.emplace(std::move(watch));
}

ChiefProcess::~ChiefProcess() {
  {
    MutexLock lock(&mutex_);
    running_ = nullptr;
  }
  // Without the lock, or a second Ctrl-C would wait for the files, too.
  if (disk_hangs_) {
    (void)chief_.release();
  } else {
    chief_.reset();
  }
}

void ChiefProcess::RequestStop() {
  LOG(INFO) << "chief: terminating; Ctrl-C once more ends at once";
  MutexLock lock(&mutex_);
  stop_requested_ = true;
  stop_.SignalAll();
  if (running_ != nullptr) running_->ends()->RequestStop();
}

void ChiefProcess::RequestSave() {
  LOG(INFO) << "chief: "
            << (options_.chief.logdir.empty() ? "there is no logdir to save to; continues"
                                              : "saves now, and continues");
  MutexLock lock(&mutex_);
  save_requested_ = true;
  if (running_ != nullptr) running_->RequestSave();
}

void ChiefProcess::AwaitPredecessor() {
  const Chief::Options& chief = options_.chief;
  const auto is_held = [&chief] { return RunDirectory::IsHeld(chief.fs, chief.logdir); };
  if (chief.logdir.empty() || options_.predecessor_limit <= absl::ZeroDuration() || !is_held()) return;
  LOG(INFO) << "chief: another chief is still ending in " << chief.logdir << "; waiting up to "
            << options_.predecessor_limit << " for it";
  const absl::Time deadline = chief.clock->Now() + options_.predecessor_limit;
  do {
    MutexLock lock(&mutex_);
    const absl::Time next = chief.clock->Now() + kPredecessorPeriod;
    while (!stop_requested_ && !chief.clock->WaitUntil(&stop_, &mutex_, next)) {
    }
    if (stop_requested_) return;
  } while (chief.clock->Now() < deadline && is_held());
}

absl::Status ChiefProcess::Create() {
  AwaitPredecessor();
  {
    MutexLock lock(&mutex_);
    if (stop_requested_) return absl::CancelledError("stopped before the chief was there");
  }
  ASSIGN_OR_RETURN(chief_, Chief::Create(options_.chief));
  second_exit_code_ = kExitFailed;
  MutexLock lock(&mutex_);
  running_ = chief_.get();
  if (stop_requested_) running_->ends()->RequestStop();
  if (save_requested_) running_->RequestSave();
  return absl::OkStatus();
}

absl::Status ChiefProcess::Wait() {
  absl::Status status = chief_->ends()->Wait();
  disk_hangs_ = absl::IsDeadlineExceeded(status);
  if (disk_hangs_) status = AsDiskHang(std::move(status));
  // All that can be saved is.
  second_exit_code_ = ExitCode(status);
  return status;
}

int ChiefProcess::ExitCode(const absl::Status& status) const {
  if (absl::IsDeadlineExceeded(status)) return kExitFailed;
  if (chief_ != nullptr || status.ok() || absl::IsCancelled(status)) return ExitCodeOf(status);
  // It could not be created. An I/O error may be gone the next time.
  if (absl::IsInternal(status)) return kExitRetryable;
  // Another chief has the logdir, and may end.
  if (absl::IsFailedPrecondition(status) && ExitCodeOf(status) == kExitRetryable) return kExitRetryable;
  return absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) ? kExitBadConfiguration : kExitFailed;
}

}  // namespace lockstep
