#include "lockstep/common/transport/grpc_step_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/common/transport/connection/status_conversion.h"

namespace lockstep {
namespace {

gpr_timespec DeadlineAfter(absl::Duration wait) {
  if (wait <= absl::ZeroDuration()) return gpr_time_0(GPR_CLOCK_MONOTONIC);
  if (wait == absl::InfiniteDuration()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(absl::ToInt64Microseconds(wait), GPR_TIMESPAN));
}

constexpr char kStepMethod[] = "/lockstep.v1.ChiefService/Step";
constexpr int64_t kFrameBytes = 256 << 10;
// Maximum number of elements in a piece (4 MiB), which keeps frames well below the 8 MiB that the chief accepts.
constexpr int64_t kMaxPieceElements = 16 * ParameterLayout::kSegmentElements;
constexpr int64_t kReportBytes = 1 << 20;

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
  // The connection's certificate has expired or was revoked. The next session's connection will show whether a renewed
  // certificate helps.
  if (result.error_code() == grpc::StatusCode::UNAUTHENTICATED) return absl::AbortedError(result.error_message());
  return FromGrpc(result);
}

// Does not set the operation's flag, because another thread may be polling.
void PolledStream::Wake() { alarm_.Set(&queue_, gpr_time_0(GPR_CLOCK_MONOTONIC), &pending_[kWake]); }

GrpcStepStream::GrpcStepStream(std::shared_ptr<grpc::Channel> channel, absl::Duration leave_limit)
    : leave_limit_(leave_limit), stream_(std::move(channel), kStepMethod) {}

GrpcStepStream::~GrpcStepStream() { Close().IgnoreError(); }

FrameSizes GrpcStepStream::sizes() const {
  FrameSizes sizes;
  sizes.frame_bytes = kFrameBytes;
  sizes.piece_elements = kMaxPieceElements;
  sizes.report_bytes = kReportBytes;
  return sizes;
}

absl::Status GrpcStepStream::Send(const StepFrame& frame) {
  if (!status_.ok()) return Close();
  grpc::ByteBuffer message = EncodeStepRequest(frame);
  frames_.emplace_back();
  frames_.back().Swap(&message);  // because ByteBuffer's constructor would copy it
  StartWrite();
  return absl::OkStatus();
}

void GrpcStepStream::StartWrite() {
  if (stream_.writing() || !stream_.started() || frames_.empty() || !status_.ok()) return;
  stream_.Write(frames_.front());
  frames_.pop_front();
  StartRead();
}

void GrpcStepStream::StartRead() {
  if (stream_.reading() || !stream_.started() || broken_ || !status_.ok()) return;
  paused_ = false;
  stream_.Read();
}

void GrpcStepStream::Break(const char* why) {
  broken_ = true;
  if (status_.ok()) status_ = absl::UnavailableError(why);
}

bool GrpcStepStream::HandleOne(absl::Duration wait, Receiver* receiver) {
  switch (stream_.Poll(wait)) {
    case PolledStream::Event::kNone:
      return false;
    case PolledStream::Event::kStarted:
      StartRead();
      StartWrite();
      break;
    case PolledStream::Event::kWritten:
      StartWrite();
      break;
    case PolledStream::Event::kRead:
      HandleReply(receiver);
      break;
    case PolledStream::Event::kFailedRead:
      read_failed_ = true;
      Break("the chief ended the stream");
      break;
    case PolledStream::Event::kFailedOther:
      Break("the stream to the chief broke");
      break;
    case PolledStream::Event::kFinished:
    case PolledStream::Event::kWoken:
      break;
  }
  return true;
}

void GrpcStepStream::HandleReply(Receiver* receiver) {
  absl::StatusOr<bool> more = true;
  if (receiver != nullptr) {
    const absl::Status status = DecodeStepReply(*stream_.received(), &decoded_);
    more = status.ok() ? receiver->OnReply(decoded_.frame) : status;
    decoded_.Clear();
    if (!more.ok()) {
      status_ = absl::Status(more.status().code(), absl::StrCat("a reply of the chief: ", more.status().message()));
      return;
    }
  }
  stream_.received()->Clear();
  // The chief sends nothing after a token until it receives something. Starting the next read together with that write
  // saves a separate flow-control packet, which would add 12 us to the smallest step.
  paused_ = !*more;
  if (*more) StartRead();
}

absl::Status GrpcStepStream::Poll(Receiver* receiver) {
  while (status_.ok() && stream_.writing() && HandleOne(absl::ZeroDuration(), receiver)) {
  }
  return status_.ok() ? absl::OkStatus() : Close();
}

absl::StatusOr<bool> GrpcStepStream::Receive(Receiver* receiver) {
  StartRead();
  while (status_.ok() && !paused_ && !wait_cancelled_.load()) HandleOne(absl::InfiniteDuration(), receiver);
  if (!status_.ok()) return Close();
  return paused_;
}

absl::Status GrpcStepStream::Look(absl::Duration wait) {
  StartRead();
  while (status_.ok() && HandleOne(wait, nullptr)) wait = absl::ZeroDuration();
  return status_.ok() ? absl::OkStatus() : Close();
}

void GrpcStepStream::Drain() {
  StartRead();
  // The chief ends the stream after it has read the last frame.
  while (status_.ok() && HandleOne(leave_limit_, nullptr)) {
  }
}

void GrpcStepStream::CancelWait() {
  if (!wait_cancelled_.exchange(true)) stream_.Wake();
}

absl::Status GrpcStepStream::Close() {
  if (std::exchange(closed_, true)) return status_;
  if (!broken_) stream_.Cancel();
  // gRPC delivers the status only after all messages before it have been read.
  while (broken_ && !read_failed_) {
    if (!stream_.reading()) stream_.Read();
    read_failed_ = stream_.Poll(absl::InfiniteDuration()) == PolledStream::Event::kFailedRead;
  }
  const absl::Status result = stream_.Finish();
  // Prefer the chief's own status to the error on this side, because it is more precise, unless this end cancelled the
  // stream.
  if (!result.ok() && (status_.ok() || (broken_ && absl::IsUnavailable(status_)))) status_ = result;
  if (status_.ok()) status_ = absl::UnavailableError("the chief closed the stream");
  return status_;
}

}  // namespace lockstep
