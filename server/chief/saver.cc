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
    : options_(std::move(options)), manager_(std::move(manager)), thread_([this] { Loop(); }) {}

Saver::~Saver() {
  WaitUntilIdle().IgnoreError();
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void Saver::Save(VariableStore::Snapshot snapshot) {
  MutexLock lock(&mutex_);
  if (writing_step_ && *writing_step_ == snapshot.step) return;
  const absl::Time now = options_.clock->Now();
  interval_ = now - last_snapshot_;
  last_snapshot_ = now;
  waiting_ = std::move(snapshot);
  changed_.SignalAll();
}

absl::Status Saver::WaitUntilIdle() {
  {
    MutexLock lock(&mutex_);
    ++callers_;
    changed_.SignalAll();  // ends a pause
  }
  while (true) {
    VariableStore::Snapshot snapshot;
    {
      MutexLock lock(&mutex_);
      while (writing_step_) changed_.Wait(&mutex_);
      if (!waiting_) {
        --callers_;
        return last_status_;
      }
      snapshot = TakeWaiting();
    }
    WriteAndTell(std::move(snapshot), /*paced=*/false);
  }
}

void Saver::Loop() {
  // Of this thread alone: writing takes what training leaves of the processors, also when a newer snapshot waits.
  const auto thread = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kNiceness);
  while (true) {
    VariableStore::Snapshot snapshot;
    {
      MutexLock lock(&mutex_);
      while ((!waiting_ || writing_step_ || callers_ > 0) && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      snapshot = TakeWaiting();
    }
    WriteAndTell(std::move(snapshot), /*paced=*/true);
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
  if (options_.on_saved) options_.on_saved(step, prefix, status);
  MutexLock lock(&mutex_);
  last_status_ = status;
  writing_step_.reset();
  changed_.SignalAll();
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
  while (callers_ == 0 && !waiting_ && !options_.clock->WaitUntil(&changed_, &mutex_, turn)) {
  }
  // Going on here might take long: the caller has a higher priority, which this thread may not be allowed to take.
  return callers_ == 0 ? absl::OkStatus() : absl::CancelledError("left to a caller who waits");
}

void Saver::PutBack(VariableStore::Snapshot snapshot) {
  MutexLock lock(&mutex_);
  if (!waiting_) waiting_ = std::move(snapshot);
  writing_step_.reset();
  changed_.SignalAll();
}

}  // namespace lockstep
