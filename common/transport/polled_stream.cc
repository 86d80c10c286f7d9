#include "lockstep/common/transport/polled_stream.h"

#include <utility>

#include "lockstep/common/transport/connection/status_conversion.h"

namespace lockstep {
namespace {

gpr_timespec DeadlineAfter(absl::Duration wait) {
  if (wait <= absl::ZeroDuration()) return gpr_time_0(GPR_CLOCK_MONOTONIC);
  if (wait == absl::InfiniteDuration()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(absl::ToInt64Microseconds(wait), GPR_TIMESPAN));
}

}  // namespace

PolledStream::PolledStream(std::shared_ptr<grpc::Channel> channel, const std::string& method)
    : stub_(std::move(channel)) {
  stream_ = stub_.PrepareCall(&context_, method, &queue_);
  stream_->StartCall(Begin(kStart));
}

PolledStream::~PolledStream() {
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

void* PolledStream::Begin(Operation operation) {
  pending_[operation] = true;
  return &pending_[operation];
}

void PolledStream::Write(const grpc::ByteBuffer& message) { stream_->Write(message, Begin(kWrite)); }

void PolledStream::Read() { stream_->Read(&received_, Begin(kRead)); }

PolledStream::Event PolledStream::Poll(absl::Duration wait) {
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, DeadlineAfter(wait)) != grpc::CompletionQueue::GOT_EVENT) return Event::kNone;
  const auto operation = static_cast<Operation>(static_cast<bool*>(tag) - pending_);
  if (operation == kWake) return Event::kWoken;
  pending_[operation] = false;
  if (operation == kFinish) return Event::kFinished;
  if (!ok) return operation == kRead ? Event::kFailedRead : Event::kFailedOther;
  if (operation == kRead) return Event::kRead;
  return operation == kWrite ? Event::kWritten : Event::kStarted;
}

absl::Status PolledStream::Finish() {
  while (pending(kStart) || pending(kRead) || pending(kWrite)) Poll(absl::InfiniteDuration());
  grpc::Status result;
  stream_->Finish(&result, Begin(kFinish));
  while (pending(kFinish)) Poll(absl::InfiniteDuration());
  return FromGrpc(result);
}

// Its flag is not touched here: another thread polls.
void PolledStream::Wake() { alarm_.Set(&queue_, gpr_time_0(GPR_CLOCK_MONOTONIC), &pending_[kWake]); }

}  // namespace lockstep
