#include "lockstep/server/sync/arrivals/arrival_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/server/sync/arrivals/recorded_order.h"

namespace lockstep {

absl::StatusOr<bool> ArrivalLog::HasFiles(FileSystem* fs, const std::string& logdir) {
  ASSIGN_OR_RETURN(const auto files, ArrivalFiles(fs, logdir));
  return !files.empty();
}

absl::StatusOr<std::unique_ptr<ArrivalLog>> ArrivalLog::Create(Options options) {
  const std::string path = ArrivalFile(options.logdir, options.header.generation());
  ASSIGN_OR_RETURN(const bool exists, options.fs->Exists(path));
  if (exists) return absl::AlreadyExistsError(absl::StrCat(path, ": the order of arrival cannot be recorded there"));
  options.header.set_format(kArrivalLogFormat);
  // As with all files of a chief, only renaming it makes the file visible.
  const std::string temporary = absl::StrCat(path, ".tmp");
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, options.fs->NewWritableFile(temporary));
  absl::Status begun = file->Append(FrameRecord(options.header.SerializeAsString()));
  if (begun.ok()) begun = file->Sync();
  if (begun.ok()) begun = options.fs->Rename(temporary, path);
  if (begun.ok()) begun = options.fs->SyncDirectory(options.logdir);
  if (!begun.ok()) {
    options.fs->Remove(temporary).IgnoreError();
    options.fs->Remove(path).IgnoreError();
    return begun;
  }
  return std::unique_ptr<ArrivalLog>(new ArrivalLog(std::move(options), std::move(file)));
}

ArrivalLog::ArrivalLog(Options options, std::unique_ptr<WritableFile> file)
    : options_(std::move(options)), file_(std::move(file)) {
  PeriodicTask::Options task;
  task.clock = options_.clock;
  task.executor = options_.executor;
  task.period = options_.period;
  task.first_at_once = false;
  task.name = "arrivals";
  task_ = std::make_unique<PeriodicTask>(task, [this] { Write(); });
}

ArrivalLog::~ArrivalLog() {
  task_->Stop();
  Write();
  const absl::Status closed = file_->Close();
  LOG_IF(ERROR, !closed.ok()) << "the order of arrival is not whole: " << closed.message();
}

void ArrivalLog::Append(const v1::Arrival& arrival) {
  const std::string record = FrameRecord(arrival.SerializeAsString());
  MutexLock lock(&mutex_);
  if (pending_.size() + record.size() > kMaxPendingBytes) {
    LOG_IF(ERROR, !overflowed_) << "the order of arrival cannot be written; the steps from " << arrival.step()
                                << " on are not on record: " << written_.message();
    overflowed_ = true;
    pending_.clear();
  }
  pending_ += record;
}

absl::Status ArrivalLog::Sync() {
  {
    MutexLock lock(&mutex_);
    sync_requested_ = true;
  }
  task_->RunOnce();
  MutexLock lock(&mutex_);
  return written_;
}

void ArrivalLog::Write() {
  std::string records;
  bool syncs = false;
  {
    MutexLock lock(&mutex_);
    records.swap(pending_);
    syncs = sync_requested_;
  }
  // A failed Append leaves nothing in the file.
  absl::Status status = records.empty() ? absl::OkStatus() : file_->Append(records);
  const bool appended = status.ok();
  if (appended) status = syncs ? file_->Sync() : file_->Flush();
  MutexLock lock(&mutex_);
  if (!appended) pending_.insert(0, records);
  if (status.ok() && syncs) sync_requested_ = false;
  written_ = std::move(status);
}

}  // namespace lockstep
