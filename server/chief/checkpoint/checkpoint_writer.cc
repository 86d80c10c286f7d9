#include "lockstep/server/chief/checkpoint/checkpoint_writer.h"

#include <utility>

#include "lockstep/common/base/process/trace_recorder.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/server/chief/checkpoint/save_pace.h"

namespace lockstep {
namespace {

uint64_t BytesOf(const VariableStore::Snapshot& snapshot) {
  uint64_t bytes = snapshot.values->size();
  if (snapshot.constants != nullptr) bytes += snapshot.constants->size();
  for (const auto& slot : snapshot.optimizer_state) bytes += slot->size();
  for (const auto& estimate : *snapshot.estimates) bytes += estimate->size();
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(Options options) {
  ASSIGN_OR_RETURN(auto manager, CheckpointManager::Create(options.fs, options.checkpoints));
  if (options.restored) RETURN_IF_ERROR(manager->Adopt(*options.restored));
  return std::unique_ptr<CheckpointWriter>(new CheckpointWriter(std::move(options), std::move(manager)));
}

CheckpointWriter::CheckpointWriter(Options options, std::unique_ptr<CheckpointManager> manager)
    : options_(std::move(options)),
      manager_(std::move(manager)),
      // Runs at a lower priority than training, even when a newer snapshot waits. On busy processors, it still gets
      // three times the processor time that SavePace needs.
      paced_(options_.executor->Start(
          "paced saves", [this] { Loop(/*paced=*/true); }, Executor::Priority::kBackground)),
      at_once_(options_.executor->Start("saves", [this] { Loop(/*paced=*/false); })) {}

CheckpointWriter::~CheckpointWriter() {
  LimitWaits(absl::InfiniteFuture());
  WaitUntilIdle().IgnoreError();
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  paced_->Join();
  at_once_->Join();
}

bool CheckpointWriter::Save(VariableStore::Snapshot snapshot) {
  MutexLock lock(&mutex_);
  if (!queue_.Offer(snapshot.step, options_.clock->Now())) return false;
  waiting_ = std::move(snapshot);
  changed_.SignalAll();
  return true;
}

void CheckpointWriter::SaveAtOnce(VariableStore::Snapshot snapshot) {
  MutexLock lock(&mutex_);
  if (!queue_.OfferUrgent(snapshot.step)) return;
  waiting_ = std::move(snapshot);
  changed_.SignalAll();
}

bool CheckpointWriter::Hurry() {
  MutexLock lock(&mutex_);
  queue_.MakeUrgent();
  changed_.SignalAll();  // ends a pause
  return queue_.busy();
}

absl::Status CheckpointWriter::SaveAgain(VariableStore::Snapshot snapshot) {
  const absl::Status idle = WaitUntilIdle();
  if (absl::IsDeadlineExceeded(idle)) return idle;
  {
    MutexLock lock(&mutex_);
    queue_.OfferAgain(snapshot.step);
    waiting_ = std::move(snapshot);
    changed_.SignalAll();
  }
  return WaitUntilIdle();
}

absl::Status CheckpointWriter::WaitUntilIdle() {
  Hurry();
  MutexLock lock(&mutex_);
  while (queue_.busy()) {
    if (options_.clock->WaitUntil(&changed_, &mutex_, deadline_)) {
      return absl::DeadlineExceededError("the disk takes too long");
    }
  }
  return last_status_;
}

void CheckpointWriter::LimitWaits(absl::Time deadline) {
  MutexLock lock(&mutex_);
  deadline_ = deadline;
  changed_.SignalAll();
}

void CheckpointWriter::Loop(bool paced) {
  while (true) {
    VariableStore::Snapshot snapshot;
    {
      MutexLock lock(&mutex_);
      while (!queue_.HasWork(paced) && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      queue_.Take();
      snapshot = *std::exchange(waiting_, absl::nullopt);
    }
    if (options_.writes_all) options_.events->OnEvent({RunEvent::kRoom, snapshot.step});
    WriteAndReport(std::move(snapshot), paced);
  }
}

void CheckpointWriter::WriteAndReport(VariableStore::Snapshot snapshot, bool paced) {
  const std::string prefix = manager_->PrefixOf(snapshot.step);
  const int64_t step = snapshot.step;
  const absl::Time began = options_.clock->Now();
  const auto bytes = static_cast<int64_t>(BytesOf(snapshot));
  const absl::Status status = Write(snapshot, prefix, paced);
  if (paced && absl::IsCancelled(status)) {
    PutBack(std::move(snapshot));
    return;
  }
  snapshot = VariableStore::Snapshot();  // its memory is freed before anyone is notified
  RunEvent written{status.ok() ? RunEvent::kSaved : RunEvent::kSaveFailed, step, "", prefix, status};
  written.count = paced ? 0 : 1;
  written.time = options_.clock->Now() - began;
  written.bytes = bytes;
  options_.events->OnEvent(written);
  MutexLock lock(&mutex_);
  last_status_ = status;
  queue_.OnWritten(status.ok());
  if (!queue_.waiting()) waiting_.reset();
  changed_.SignalAll();
}

absl::Status CheckpointWriter::Write(const VariableStore::Snapshot& snapshot, const std::string& prefix, bool paced) {
  TraceSpan span("save");
  if (options_.checkpoints.may_record) RETURN_IF_ERROR(options_.checkpoints.may_record());
  {
    BundleWriterOptions files;
    if (paced) files.before_piece = NewPace(snapshot);
    ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(options_.fs, prefix, std::move(files)));
    RETURN_IF_ERROR(WriteSnapshot(snapshot, writer.get()));
    RETURN_IF_ERROR(writer->Finish());
  }
  return manager_->Record(prefix);
}

BundleWriterOptions::BeforePiece CheckpointWriter::NewPace(const VariableStore::Snapshot& snapshot) {
  MutexLock lock(&mutex_);
  const SavePace pace(options_.clock->Now(), BytesOf(snapshot), queue_.interval());
  return [this, pace](uint64_t offset) {
    return offset < SavePace::kPieceBytes ? absl::OkStatus() : AwaitTurn(pace.TurnOf(offset));
  };
}

absl::Status CheckpointWriter::AwaitTurn(absl::Time turn) {
  MutexLock lock(&mutex_);
  while (!queue_.urgent() && !queue_.waiting() && !options_.clock->WaitUntil(&changed_, &mutex_, turn)) {
  }
  // Cancels the write so that the other thread, which has a higher priority, can take over; this thread may not be
  // allowed to raise its own priority. The snapshot returns to the queue, where a newer one might replace it. That must
  // not happen with writes_all.
  return queue_.urgent() && !options_.writes_all ? absl::CancelledError("left to the thread that writes at once")
                                                 : absl::OkStatus();
}

void CheckpointWriter::PutBack(VariableStore::Snapshot snapshot) {
  MutexLock lock(&mutex_);
  if (queue_.PutBack()) waiting_ = std::move(snapshot);
  changed_.SignalAll();
}

}  // namespace lockstep
