#include "lockstep/common/transport/ring_step_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/transport/codec/ring_messages.h"
#include "lockstep/common/transport/codec/step_codec.h"

namespace lockstep {
namespace {

// Larger than any reply from a chief.
constexpr size_t kMaxReplyBytes = 64 << 20;
// Interval at which a worker that waits on the ring checks whether the stream has ended.
constexpr absl::Duration kLook = absl::Milliseconds(20);

// A receiver of the chief's answer to the offer of a ring. A chief that does not support rings sends ordinary replies
// instead, which are passed on.
class AnswerReceiver : public StepStream::Receiver {
 public:
  explicit AnswerReceiver(StepStream::Receiver* receiver) : receiver_(*receiver) {}

  absl::StatusOr<bool> OnReply(const StepReplyFrame& reply) override {
    if (!reply.ring) return receiver_.OnReply(reply);
    answer_ = reply.ring;
    return false;
  }
  const absl::optional<v1::SharedMemoryHandle>& answer() const { return answer_; }

 private:
  StepStream::Receiver& receiver_;
  absl::optional<v1::SharedMemoryHandle> answer_;
};

std::unique_ptr<RingEndpoint> NewRing() {
  auto ring = RingEndpoint::Create(kMaxReplyBytes);
  return ring.ok() ? *std::move(ring) : nullptr;
}

}  // namespace

RingStepStream::RingStepStream(std::unique_ptr<GrpcStepStream> stream, absl::Duration leave_limit)
    : leave_limit_(leave_limit), stream_(std::move(stream)), ring_(NewRing()) {}

RingStepStream::~RingStepStream() { Close().IgnoreError(); }

absl::Status RingStepStream::Send(const StepFrame& frame) {
  switch (path_) {
    case Path::kNew:
      return Offer(frame);
    case Path::kOffered:  // the worker leaves immediately
      return Break(absl::UnavailableError("the chief has not answered yet"));
    case Path::kStream:
      return stream_->Send(frame);
    case Path::kRing:
      PutMessage(EncodeStepRequest(frame), ring_.get());
      return Flush().status();
  }
  return absl::OkStatus();
}

absl::Status RingStepStream::Offer(const StepFrame& first) {
  if (!first.gradient_memory || ring_ == nullptr) {
    path_ = Path::kStream;
    return stream_->Send(first);
  }
  path_ = Path::kOffered;
  StepFrame offer = first;
  offer.ring = ring_->handle();
  return stream_->Send(offer);
}

absl::Status RingStepStream::Poll(Receiver* receiver) {
  return path_ == Path::kRing ? Flush().status() : stream_->Poll(receiver);
}

absl::StatusOr<bool> RingStepStream::Receive(Receiver* receiver) {
  if (path_ == Path::kOffered) {
    ASSIGN_OR_RETURN(const bool answered, AwaitAnswer(receiver));
    if (!answered) return !wait_cancelled_.load();
  }
  return path_ == Path::kRing ? ReceiveFromRing(receiver) : stream_->Receive(receiver);
}

absl::StatusOr<bool> RingStepStream::AwaitAnswer(Receiver* receiver) {
  AnswerReceiver answers(receiver);
  ASSIGN_OR_RETURN(const bool paused, stream_->Receive(&answers));
  if (!paused) return false;
  path_ = Path::kStream;
  if (!answers.answer()) return false;
  if (answers.answer()->bytes() == 0) return true;
  const absl::Status attached = ring_->Attach(*answers.answer());
  if (!attached.ok()) {
    // If the chief has ended the stream, it has dropped its ring, and its status gives the reason.
    stream_->Drain();
    const absl::Status ended = stream_->Look(absl::ZeroDuration());
    if (!ended.ok()) return Break(ended);
    return Break(absl::UnavailableError(absl::StrCat("the chief's ring: ", attached.message())));
  }
  path_ = Path::kRing;
  return true;
}

absl::StatusOr<bool> RingStepStream::ReceiveFromRing(Receiver* receiver) {
  RETURN_IF_ERROR(status_);
  for (absl::Status stream;;) {
    const uint32_t ticket = ring_->Ticket();
    ASSIGN_OR_RETURN(const bool sent, Flush());
    bool more = true;
    ASSIGN_OR_RETURN(const bool taken, TakeReply(receiver, &more));
    if (!more) return true;
    if (taken) continue;
    if (wait_cancelled_.load()) return false;
    if (!stream.ok() || cancelled_.load()) return Close();
    if (sent && receiver->OnIdle()) continue;
    ring_->Wait(ticket, kLook);
    // First take the messages that the chief sent before it ended the stream.
    if (ring_->Ticket() == ticket) stream = stream_->Look(absl::ZeroDuration());
  }
}

absl::StatusOr<bool> RingStepStream::TakeReply(Receiver* receiver, bool* more) {
  grpc::ByteBuffer message;
  const absl::StatusOr<bool> taken = TakeMessage(ring_.get(), &message);
  if (!taken.ok()) return Break(taken.status());
  if (!*taken || receiver == nullptr) return taken;
  Decoded<StepReplyFrame> decoded;
  absl::Status status = DecodeStepReply(message, &decoded);
  if (status.ok()) {
    const absl::StatusOr<bool> result = receiver->OnReply(decoded.frame);
    if (result.ok()) *more = *result;
    status = result.status();
  }
  if (!status.ok()) {
    return Break(absl::Status(status.code(), absl::StrCat("a reply of the chief: ", status.message())));
  }
  return true;
}

absl::StatusOr<bool> RingStepStream::Flush() {
  RETURN_IF_ERROR(status_);
  const absl::StatusOr<bool> sent = ring_->Flush();
  if (!sent.ok()) return Break(sent.status());
  return *sent;
}

void RingStepStream::Drain() {
  if (path_ != Path::kRing) return stream_->Drain();
  // The chief ends the stream after it has read the last frame.
  for (absl::Duration waited; waited < leave_limit_ && Flush().ok(); waited += kLook) {
    bool more;
    while (TakeReply(nullptr, &more).value_or(false)) waited = absl::ZeroDuration();
    if (!stream_->Look(kLook).ok()) return;
  }
}

absl::Status RingStepStream::Break(const absl::Status& why) {
  if (status_.ok()) status_ = why;
  return Close();
}

absl::Status RingStepStream::Close() {
  const absl::Status ended = stream_->Close();
  if (status_.ok()) status_ = ended;
  return status_;
}

void RingStepStream::CancelWait() {
  wait_cancelled_.store(true);
  stream_->CancelWait();
  if (ring_ != nullptr) ring_->Wake();
}

void RingStepStream::Cancel() {
  cancelled_.store(true);
  stream_->Cancel();
  if (ring_ != nullptr) ring_->Wake();
}

}  // namespace lockstep
