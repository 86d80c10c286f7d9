#include "server/rpc/step_call.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/status_conversion.h"
#include "common/transport/step_codec.h"
#include "glog/logging.h"

namespace lockstep {
namespace {

// Messages that stand for so many bytes are worked on while another thread waits for the next: below it, passing the
// waiting on (about 5 us) costs more than it brings.
constexpr size_t kLongMessageBytes = 32 << 10;

// Of a stream's first frame, whose sender nobody knows yet: a few numbers and the name of some memory.
constexpr size_t kMaxFirstFrameBytes = 4096;

// Points the pieces that lie in shared memory to it. `memory` is null when the stream has none.
absl::Status FindSharedPieces(const SharedMemory* memory, StepFrame* frame) {
  for (StepPiece& piece : frame->gradients) {
    if (!piece.shared) continue;
    const PlaceInMemory& place = *piece.shared;
    if (memory == nullptr) {
      return absl::InvalidArgumentError("a gradient lies in shared memory; the stream has none");
    }
    if (place.offset % sizeof(float) != 0 || place.offset > memory->size() ||
        place.bytes > memory->size() - place.offset) {
      return absl::InvalidArgumentError(absl::StrCat("a gradient lies at byte ", place.offset, " with ", place.bytes,
                                                     " bytes in shared memory of ", memory->size()));
    }
    const DataType type = piece.content.type();
    piece.content = FloatChunks();
    piece.content.Append({memory->data() + place.offset, place.bytes});
    piece.content.set_type(type);
  }
  return absl::OkStatus();
}

}  // namespace

void StepCall::Start(const Options& options, std::unique_ptr<IncomingCall> incoming) {
  std::shared_ptr<StepCall> call(new StepCall(options, std::move(incoming)));
  {
    MutexLock lock(&call->mutex_);
    call->self_ = call;
  }
  // First: it leaves when it has read a session.
  options.visitors->Enter(call);
  MutexLock lock(&call->mutex_);
  if (call->finish_wanted_) return;
  call->BeginOperation();
  call->silence_.Set(options.queue,
                     std::chrono::system_clock::now() + absl::ToChronoMicroseconds(options.silence_limit),
                     &call->silence_tag_);
  call->BeginOperation();
  call->rpc_->stream.Read(&call->received_, &call->read_tag_);
}

StepCall::StepCall(const Options& options, std::unique_ptr<IncomingCall> call)
    : options_(options),
      rpc_(std::move(call)),
      read_tag_(this, &StepCall::OnRead, &received_),
      silence_tag_(this, &StepCall::OnSilent, nullptr),
      write_tag_(this, &StepCall::OnWritten, &sent_),
      finish_tag_(this, &StepCall::OnFinished, nullptr) {}

void StepCall::Tag::OnEvent(bool ok) {
  StepCall* const call = call_;
  (call->*handle_)(ok);
  call->EndOperation();  // this may be gone now
}

bool StepCall::Tag::IsLong() const {
  if (message_ == nullptr || !message_->Valid()) return false;
  // A short message may stand for gradients in shared memory.
  const bool received = message_ == &call_->received_;
  const size_t shared = received && call_->gradient_memory_ != nullptr ? call_->gradient_memory_->size() : 0;
  return message_->Length() + shared >= kLongMessageBytes;
}

void StepCall::BeginOperation() { ++operations_; }

void StepCall::EndOperation() {
  std::shared_ptr<StepCall> last;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  if (--operations_ == 0) last = std::move(self_);
}

void StepCall::OnSilent(bool expired) {
  if (!expired) return;
  Finish(absl::DeadlineExceededError(
      absl::StrCat("the stream's first frame did not come for ", absl::FormatDuration(options_.silence_limit))));
}

absl::StatusOr<std::shared_ptr<StepConnection>> StepCall::Connect(const StepFrame& first) {
  // Before anything is done that the frame asks for.
  RETURN_IF_ERROR(options_.chief->CheckSession(first.session_id, first.epoch));
  if (first.gradient_memory && options_.chief->shares_memory()) {
    auto memory = SharedMemory::Map(*first.gradient_memory);
    if (memory.ok()) {
      gradient_memory_ = *std::move(memory);
    } else {
      LOG(INFO) << "a worker's memory is not shared: " << memory.status().message();
    }
  }
  const ValuePath path = gradient_memory_ != nullptr ? ValuePath::kShared : ValuePath::kStreamed;
  ASSIGN_OR_RETURN(auto connection, options_.chief->OpenStep(first.session_id, first.epoch, path, shared_from_this()));
  limits_ = connection->frame_limits();
  options_.visitors->Leave(this);
  bool closed = false;
  {
    MutexLock lock(&mutex_);
    connection_ = connection;
    closed = finish_wanted_;
  }
  if (closed) connection->Close();
  return connection;
}

absl::Status StepCall::HandleFrame(const grpc::ByteBuffer& message, bool* leave) {
  std::shared_ptr<StepConnection> connection;
  {
    MutexLock lock(&mutex_);
    connection = connection_;
  }
  if (connection == nullptr && message.Length() > kMaxFirstFrameBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a first frame of ", message.Length(), " bytes; it takes ", kMaxFirstFrameBytes));
  }
  Decoded<StepFrame> decoded;
  RETURN_IF_ERROR(DecodeStepRequest(message, limits_, &decoded));
  *leave = decoded.frame.leave;
  if (connection == nullptr) {
    ASSIGN_OR_RETURN(connection, Connect(decoded.frame));
  }
  RETURN_IF_ERROR(FindSharedPieces(gradient_memory_.get(), &decoded.frame));
  return connection->OnFrame(decoded.frame);
}

void StepCall::OnRead(bool ok) {
  if (silent_) silence_.Cancel();
  silent_ = false;
  if (!ok) {
    // The worker has ended the stream, or it broke.
    Finish(absl::OkStatus());
    return;
  }
  bool leave = false;
  const absl::Status status = HandleFrame(received_, &leave);
  received_.Clear();
  if (!status.ok() || leave) {
    Finish(status);
    return;
  }
  MutexLock lock(&mutex_);
  if (finish_wanted_) return;
  BeginOperation();
  rpc_->stream.Read(&received_, &read_tag_);
}

void StepCall::OnReplyReady() {
  {
    MutexLock lock(&mutex_);
    if (finish_wanted_ || connection_ == nullptr) return;
    if (writing_) {
      write_again_ = true;
      return;
    }
    writing_ = true;
  }
  WriteNext();
}

void StepCall::WriteNext() {
  std::shared_ptr<StepConnection> connection;
  {
    MutexLock lock(&mutex_);
    connection = connection_;
  }
  while (true) {
    StepReplyFrame reply;
    if (connection->NextReply(&reply)) {
      sent_ = EncodeStepReply(reply);
      connection->CountSent(static_cast<int64_t>(sent_.Length()));
      MutexLock lock(&mutex_);
      if (finish_wanted_) {
        StopWriting();
        return;
      }
      BeginOperation();
      rpc_->stream.Write(sent_, &write_tag_);
      return;
    }
    // With the lock held from the test of write_again_ to the end of writing_, no call of OnReplyReady is lost.
    MutexLock lock(&mutex_);
    if (!write_again_ || finish_wanted_) {
      StopWriting();
      return;
    }
    write_again_ = false;
  }
}

void StepCall::StopWriting() {
  writing_ = false;
  if (finish_wanted_) StartFinish();
}

void StepCall::OnWritten(bool ok) {
  sent_.Clear();  // it holds values of a step that may soon be over
  bool go_on = false;
  {
    MutexLock lock(&mutex_);
    go_on = ok && !finish_wanted_;
    if (!go_on) StopWriting();
  }
  if (go_on) WriteNext();
}

void StepCall::Finish(const absl::Status& status) {
  std::shared_ptr<StepConnection> connection;
  {
    MutexLock lock(&mutex_);
    if (finish_wanted_) return;
    finish_wanted_ = true;
    finish_status_ = ToGrpc(status);
    connection = connection_;
    if (!writing_) StartFinish();
  }
  if (connection != nullptr) connection->Close();
}

void StepCall::OnClosed(const absl::Status& why, bool at_once) {
  Finish(why);
  // A write that the worker does not take ends only so; it then is told no more than that.
  if (at_once) rpc_->context.TryCancel();
}

void StepCall::OnEvicted() {
  Finish(absl::UnavailableError("too many calls at once that name no session; this one had waited longest"));
}

void StepCall::StartFinish() {
  if (finishing_) return;
  finishing_ = true;
  BeginOperation();
  rpc_->stream.Finish(finish_status_, &finish_tag_);
}

void StepCall::OnFinished(bool ok) { options_.visitors->Leave(this); }

}  // namespace lockstep
