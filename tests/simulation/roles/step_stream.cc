#include "lockstep/tests/simulation/roles/step_stream.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {
namespace {

constexpr absl::Duration kLeaveLimit = absl::Seconds(10);  // as in GrpcClientOptions

std::string Describe(const StepFrame& frame) {
  if (frame.leave) return "leaves";
  if (frame.block.count == 0) return "asks for a token";
  return absl::StrCat("sends step ", frame.step, " slots ", frame.block.first, "+", frame.block.count, ": ",
                      frame.reports.size(), " reports, ", frame.gradients.size(), " pieces", frame.end ? ", end" : "");
}

std::string Describe(const StepReplyFrame& reply) {
  std::string text;
  if (!reply.values.empty()) absl::StrAppend(&text, " ", reply.values.size(), " values of step ", reply.values_step);
  if (reply.token) {
    absl::StrAppend(&text, " a token: step ", reply.token->step(), " slots ", reply.token->first_slot(), "+",
                    reply.token->slot_count());
  }
  if (reply.finished) absl::StrAppend(&text, " the end");
  return text;
}

}  // namespace

std::string BytesOf(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  CHECK(message.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

grpc::ByteBuffer MessageOf(const std::string& bytes, Random* random) {
  const size_t cut = random->Below(bytes.size() + 1);
  const grpc::Slice slices[2] = {grpc::Slice(bytes.data(), cut), grpc::Slice(bytes.data() + cut, bytes.size() - cut)};
  return grpc::ByteBuffer(slices, 2);
}

SimulatedStepStream::SimulatedStepStream(Process* client, std::shared_ptr<Call> call, absl::Status why)
    : client_(client), call_(std::move(call)), status_(std::move(why)) {}

SimulatedStepStream::~SimulatedStepStream() { Close().IgnoreError(); }

FrameSizes SimulatedStepStream::sizes() const {
  FrameSizes sizes;
  sizes.frame_bytes = 1;
  sizes.piece_elements = 1 << 20;
  sizes.report_bytes = 64;
  return sizes;
}

absl::Status SimulatedStepStream::Send(const StepFrame& frame) {
  if (!status_.ok()) return Close();
  World* const world = client_->world();
  world->transcript()->Add(world->now(), client_->name(), Describe(frame));
  contributed_ = contributed_ || (frame.end && frame.block.count > 0);
  frames_.push_back(EncodeStepRequest(frame));
  StartWrite();
  return absl::OkStatus();
}

void SimulatedStepStream::StartWrite() {
  if (writing_->pending || frames_.empty() || !status_.ok()) return;
  // Resumes reading, as GrpcStepStream does on a write.
  paused_ = false;
  World* const world = client_->world();
  world->OnPoint(Point::kFrame);
  writing_->message = std::move(frames_.front());
  frames_.pop_front();
  writing_->pending = true;
  writing_->ended = false;
  world->scheduler()->At(
      world->now() + absl::ToInt64Nanoseconds(world->random()->Between(absl::Nanoseconds(1), absl::Microseconds(300))),
      [writing = writing_, call = call_, world] {
        // The message stays in place until the network takes it.
        call->SendRequest(BytesOf(writing->message));
        writing->message.Clear();
        writing->ended = true;
        world->scheduler()->Wake(call.get());
      });
}

void SimulatedStepStream::Break() {
  if (status_.ok()) status_ = absl::UnavailableError("the stream to the chief broke");
}

bool SimulatedStepStream::HandleOne(absl::Duration wait, Receiver* receiver) {
  World* const world = client_->world();
  const Instant deadline = wait == absl::InfiniteDuration() ? kNever : world->now() + absl::ToInt64Nanoseconds(wait);
  while (true) {
    if (client_->ghost() || call_->status) {
      if (!call_->status || call_->replies.empty() || paused_) {
        Break();
        return true;
      }
    }
    if (writing_->pending && writing_->ended) {
      writing_->pending = false;
      StartWrite();
      return true;
    }
    if (!paused_ && !call_->replies.empty()) {
      HandleReply(receiver);
      return true;
    }
    if (wait_cancelled_ && wait == absl::InfiniteDuration()) return true;
    if (world->now() >= deadline) return false;
    world->scheduler()->WaitFor(call_.get(), deadline);
  }
}

void SimulatedStepStream::HandleReply(Receiver* receiver) {
  World* const world = client_->world();
  const grpc::ByteBuffer message = MessageOf(call_->TakeReply(), world->random());
  if (receiver == nullptr) return;
  Decoded<StepReplyFrame> decoded;
  const absl::Status status = DecodeStepReply(message, &decoded);
  if (status.ok()) world->transcript()->Add(world->now(), client_->name(), "receives", Describe(decoded.frame));
  client_->heard_at = world->now();
  if (status.ok() && contributed_ && decoded.frame.token) client_->told_at = world->now();
  const absl::StatusOr<bool> more = status.ok() ? receiver->OnReply(decoded.frame) : status;
  if (!more.ok()) {
    status_ = absl::Status(more.status().code(), absl::StrCat("a reply of the chief: ", more.status().message()));
    return;
  }
  paused_ = !*more;
}

absl::Status SimulatedStepStream::Poll(Receiver* receiver) {
  while (status_.ok() && writing_->pending && HandleOne(absl::ZeroDuration(), receiver)) {
  }
  return status_.ok() ? absl::OkStatus() : Close();
}

absl::StatusOr<bool> SimulatedStepStream::Receive(Receiver* receiver) {
  paused_ = false;
  while (status_.ok() && !paused_ && !wait_cancelled_) HandleOne(absl::InfiniteDuration(), receiver);
  if (!status_.ok()) return Close();
  return paused_;
}

void SimulatedStepStream::Drain() {
  paused_ = false;
  while (status_.ok() && HandleOne(kLeaveLimit, nullptr)) {
  }
}

void SimulatedStepStream::CancelWait() {
  wait_cancelled_ = true;
  if (call_ != nullptr) client_->world()->scheduler()->Wake(call_.get());
}

void SimulatedStepStream::Cancel() {
  if (call_ != nullptr) call_->Cancel(absl::CancelledError("CANCELLED"));
}

absl::Status SimulatedStepStream::Close() {
  if (std::exchange(closed_, true)) return status_;
  if (call_ == nullptr) return status_;
  const bool broken = call_->status.has_value();
  if (!broken) call_->Cancel(absl::CancelledError("CANCELLED"));
  // The chief's status is more informative than the local error, unless this end cancelled the stream.
  const absl::Status result = *call_->status;
  if (!result.ok() && (status_.ok() || (broken && absl::IsUnavailable(status_)))) status_ = result;
  if (status_.ok()) status_ = absl::UnavailableError("the chief closed the stream");
  return status_;
}

}  // namespace simulation
}  // namespace lockstep
