#include "server/chief/saver.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/chief/save_pace.h"

namespace lockstep {
namespace {

// Below training, but not so far that busy processors starve a save: beside three busy threads a tenth of a processor
// is left (the weights are 335 and 1024), three times what SavePace needs.
constexpr int kNiceness = 5;

uint64_t BytesOf(const VariableStore::Snapshot& snapshot) {
  uint64_t bytes = snapshot.values->size();
  for (const auto& slot : snapshot.slots) bytes += slot->size();
  for (const auto& estimate : *snapshot.estimates) bytes += estimate->size();
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Saver>> Saver::Create(Options options) {
  CheckpointManager::Options retention;
  retention.directory = options.directory;
  retention.max_to_keep = options.keep;
  retention.may_record = options.may_save;
  ASSIGN_OR_RETURN(auto manager, CheckpointManager::Create(options.fs, std::move(retention)));
  return std::unique_ptr<Saver>(new Saver(std::move(options), std::move(manager)));
}

Saver::Saver(Options options, std::unique_ptr<CheckpointManager> manager)
    : options_(std::move(options)),
      manager_(std::move(manager)),
      paced_([this] { Loop(/*paced=*/true); }),
      at_once_([this] { Loop(/*paced=*/false); }) {}

Saver::~Saver() {
  LimitWaits(absl::InfiniteFuture());
  WaitUntilIdle().IgnoreError();
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  paced_.join();
  at_once_.join();
}

bool Saver::Accept(VariableStore::Snapshot snapshot) {
  if (snapshot.step < newest_step_ || snapshot.step <= saved_step_) return false;
  newest_step_ = snapshot.step;
  waiting_ = std::move(snapshot);
  changed_.SignalAll();
  return true;
}

void Saver::Save(VariableStore::Snapshot snapshot) {
  MutexLock lock(&mutex_);
  if (writing_step_ && *writing_step_ == snapshot.step) return;
  if (!Accept(std::move(snapshot))) return;
  const absl::Time now = options_.clock->Now();
  interval_ = now - last_snapshot_;
  last_snapshot_ = now;
}

void Saver::SaveAtOnce(VariableStore::Snapshot snapshot) {
  MutexLock lock(&mutex_);
  urgent_ = Accept(std::move(snapshot)) || urgent_;
}

absl::Status Saver::WaitUntilIdle() {
  MutexLock lock(&mutex_);
  urgent_ = busy();
  changed_.SignalAll();  // ends a pause
  while (busy()) {
    if (options_.clock->WaitUntil(&changed_, &mutex_, deadline_)) {
      return absl::DeadlineExceededError("the disk takes too long");
    }
  }
  return last_status_;
}

void Saver::LimitWaits(absl::Time deadline) {
  MutexLock lock(&mutex_);
  deadline_ = deadline;
  changed_.SignalAll();
}

void Saver::Loop(bool paced) {
  if (paced) {
    // Of this thread alone: writing takes what training leaves of the processors, also when a newer snapshot waits.
    const auto thread = static_cast<id_t>(gettid());
    setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kNiceness);
  }
  while (true) {
    VariableStore::Snapshot snapshot;
    {
      MutexLock lock(&mutex_);
      while ((!waiting_ || writing_step_ || urgent_ == paced) && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      snapshot = TakeWaiting();
    }
    WriteAndTell(std::move(snapshot), paced);
  }
}

VariableStore::Snapshot Saver::TakeWaiting() {
  VariableStore::Snapshot snapshot = *std::move(waiting_);
  waiting_.reset();
  writing_step_ = snapshot.step;
  return snapshot;
}

void Saver::WriteAndTell(VariableStore::Snapshot snapshot, bool paced) {
  const std::string prefix = manager_->PrefixOf(snapshot.step);
  const int64_t step = snapshot.step;
  const absl::Status status = Write(snapshot, prefix, paced);
  if (paced && absl::IsCancelled(status)) {
    PutBack(std::move(snapshot));
    return;
  }
  snapshot = VariableStore::Snapshot();  // its memory goes before anyone is told
  if (!status.ok()) {
    LOG(ERROR) << "cannot save step " << step << ", the checkpoints before are untouched: " << status.message();
  }
  if (options_.on_saved && (status.ok() || !IsWaiting(step))) options_.on_saved(step, prefix, status);
  MutexLock lock(&mutex_);
  last_status_ = status;
  if (status.ok()) saved_step_ = step;
  if (waiting_ && waiting_->step <= saved_step_) waiting_.reset();
  writing_step_.reset();
  urgent_ = urgent_ && busy();
  changed_.SignalAll();
}

bool Saver::IsWaiting(int64_t step) {
  MutexLock lock(&mutex_);
  return waiting_ && waiting_->step == step;
}

absl::Status Saver::Write(const VariableStore::Snapshot& snapshot, const std::string& prefix, bool paced) {
  if (options_.may_save) RETURN_IF_ERROR(options_.may_save());
  {
    ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(options_.fs, prefix, paced ? NewPace(snapshot) : nullptr));
    RETURN_IF_ERROR(WriteSnapshot(snapshot, writer.get()));
    RETURN_IF_ERROR(writer->Finish());
  }
  return manager_->Record(prefix);
}

BundleWriter::BeforePiece Saver::NewPace(const VariableStore::Snapshot& snapshot) {
  MutexLock lock(&mutex_);
  const SavePace pace(options_.clock->Now(), BytesOf(snapshot), interval_);
  return [this, pace](uint64_t offset) {
    return offset < SavePace::kPieceBytes ? absl::OkStatus() : AwaitTurn(pace.TurnOf(offset));
  };
}

absl::Status Saver::AwaitTurn(absl::Time turn) {
  MutexLock lock(&mutex_);
  while (!urgent_ && !waiting_ && !options_.clock->WaitUntil(&changed_, &mutex_, turn)) {
  }
  // Going on here might take long: the other thread has a higher priority, which this one may not be allowed to take.
  return urgent_ ? absl::CancelledError("left to the thread that writes at once") : absl::OkStatus();
}

void Saver::PutBack(VariableStore::Snapshot snapshot) {
  MutexLock lock(&mutex_);
  if (!waiting_) waiting_ = std::move(snapshot);
  writing_step_.reset();
  changed_.SignalAll();
}

}  // namespace lockstep
