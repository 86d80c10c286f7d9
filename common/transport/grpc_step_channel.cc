#include "common/transport/grpc_step_channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/client/report_parts.h"
#include "common/tensor/rounding.h"
#include "common/transport/status_conversion.h"
#include "common/transport/step_codec.h"
#include "glog/logging.h"

namespace lockstep {
namespace {

constexpr char kStepMethod[] = "/lockstep.ChiefService/Step";
// A frame leaves when it holds this much, so that sending starts while the rest is still being computed.
constexpr int64_t kFrameBytes = 256 << 10;
// And no frame is much larger than this: the chief takes 8 MiB.
constexpr int64_t kMaxPieceElements = 16 * ParameterLayout::kSegmentElements;
// Reports that take more are sent in several frames.
constexpr int64_t kReportBytes = 1 << 20;

gpr_timespec DeadlineAfter(absl::Duration wait) {
  if (wait <= absl::ZeroDuration()) return gpr_time_0(GPR_CLOCK_MONOTONIC);
  if (wait == absl::InfiniteDuration()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(absl::ToInt64Microseconds(wait), GPR_TIMESPAN));
}

}  // namespace

GrpcStepChannel::GrpcStepChannel(std::shared_ptr<grpc::Channel> channel, const ChiefClient::StepOptions& options,
                                 ParameterLayout layout, absl::Duration leave_limit)
    : options_(options),
      layout_(std::move(layout)),
      leave_limit_(leave_limit),
      stub_(std::move(channel)),
      shared_values_(&layout_),
      estimates_(&layout_),
      values_(&layout_, options.compression.values) {
  const size_t bytes = static_cast<size_t>(layout_.flat_elements()) * sizeof(float);
  gradients_ = std::make_shared<AlignedBuffer>(NewGradients(bytes));
  if (options_.compression.gradients != DT_FLOAT) {
    encoded_ = std::make_shared<AlignedBuffer>(static_cast<size_t>(layout_.flat_elements()) * sizeof(uint16_t));
  }
  stream_ = stub_.PrepareCall(&context_, kStepMethod, &queue_);
  start_.pending = true;
  stream_->StartCall(&start_);
}

GrpcStepChannel::~GrpcStepChannel() {
  Close().IgnoreError();
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

AlignedBuffer GrpcStepChannel::NewGradients(size_t bytes) const {
  if (!options_.chief_memory) return AlignedBuffer(bytes);
  const absl::Status status = SharedMemory::Map(*options_.chief_memory).status();
  if (!status.ok()) LOG(INFO) << "tensors travel as bytes, the chief's memory is not shared: " << status.message();
  return status.ok() ? AlignedBuffer::Shared(bytes) : AlignedBuffer(bytes);
}

void GrpcStepChannel::FlushFrame() {
  frame_.session_id = options_.session_id;
  frame_.epoch = options_.epoch;
  if (first_frame_) {
    frame_.startup_delay_steps = options_.startup_delay_steps;
    if (gradients_->handle() != nullptr) {
      frame_.gradient_memory = *gradients_->handle();
      gradients_offered_ = true;
    }
  }
  first_frame_ = false;
  frame_.step = token_.step();
  frame_.block = {token_.first_slot(), token_.slot_count()};
  frames_.push_back(EncodeStepRequest(frame_, encoded_ != nullptr ? encoded_ : gradients_));
  frame_ = StepFrame();
  frame_bytes_ = 0;
  StartWrite();
}

void GrpcStepChannel::StartWrite() {
  if (write_.pending || start_.pending || frames_.empty() || !status_.ok()) return;
  write_.pending = true;
  stream_->Write(frames_.front(), &write_);
  frames_.pop_front();
  StartRead();
}

void GrpcStepChannel::StartRead() {
  if (read_.pending || start_.pending || broken_ || !status_.ok()) return;
  read_.pending = true;
  stream_->Read(&received_, &read_);
}

bool GrpcStepChannel::Poll(absl::Duration wait) {
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, DeadlineAfter(wait)) != grpc::CompletionQueue::GOT_EVENT) return false;
  static_cast<Operation*>(tag)->pending = false;
  if (tag == &start_ && ok) {
    StartRead();
    StartWrite();
  } else if (tag == &write_ && ok) {
    StartWrite();
  } else if (tag == &read_) {
    HandleRead(ok);
  } else if (tag != &finish_ && tag != &wake_) {
    broken_ = true;
    if (status_.ok()) status_ = absl::UnavailableError("the stream to the chief broke");
  }
  return true;
}

void GrpcStepChannel::HandleRead(bool ok) {
  if (!ok) {
    broken_ = true;
    if (status_.ok()) status_ = absl::UnavailableError("the chief ended the stream");
    return;
  }
  Decoded<StepReplyFrame> decoded;
  absl::Status status = DecodeStepReply(received_, &decoded);
  if (status.ok()) status = HandleReply(decoded.frame);
  if (!status.ok()) {
    status_ = absl::Status(status.code(), absl::StrCat("a reply of the chief: ", status.message()));
    return;
  }
  received_.Clear();
  // Nothing comes behind a token before something is sent. Reading on with that write saves a packet of flow control
  // on its own: 12 us of the smallest step.
  if (!assignment_) StartRead();
}

absl::Status GrpcStepChannel::HandleReply(const StepReplyFrame& reply) {
  if (reply.fate != FATE_NONE) fate_ = reply.fate;
  for (const StepPiece& piece : reply.values) {
    RETURN_IF_ERROR(values_.Receive(reply.values_step, piece));
  }
  for (const StepPiece& piece : reply.estimates) {
    RETURN_IF_ERROR(estimates_.Receive(reply.estimates_step, piece));
  }
  if (!reply.token && !reply.finished) return absl::OkStatus();
  Assignment assignment;
  assignment.finished = reply.finished;
  assignment.finish_message = reply.finish_message;
  if (reply.token) {
    RETURN_IF_ERROR(TakeValues(reply));
    assignment.token = *reply.token;
    if (options_.compression.top_k > 0) {
      ASSIGN_OR_RETURN(token_estimates_,
                       estimates_.Take(reply.token->step(), {reply.token->first_slot(), reply.token->slot_count()}));
      assignment.estimates = token_estimates_;
    }
  }
  assignment_ = std::move(assignment);
  return absl::OkStatus();
}

absl::Status GrpcStepChannel::TakeValues(const StepReplyFrame& reply) {
  const int64_t step = reply.token->step();
  if (reply.token->slot_count() <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("a token for step ", step, " without slots"));
  }
  shares_memory_ = reply.values_memory.has_value();
  if (shares_memory_) {
    ASSIGN_OR_RETURN(token_values_, shared_values_.Find(*reply.values_memory));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(token_values_, values_.Take(step));
  return absl::OkStatus();
}

absl::StatusOr<StepChannel::Assignment> GrpcStepChannel::AwaitToken() {
  if (token_.slot_count() > 0) estimates_.Advance();
  values_.Release();
  frame_.end = true;
  FlushFrame();
  while (status_.ok() && !assignment_ && !interrupted_.load()) Poll(absl::InfiniteDuration());
  if (!status_.ok()) return Close();
  if (!assignment_) return absl::CancelledError("the wait for a token was interrupted");
  Assignment assignment = *std::move(assignment_);
  assignment_.reset();
  assignment.fate = std::exchange(fate_, FATE_NONE);
  if (token_values_ != nullptr) assignment.values = *token_values_;
  token_ = assignment.token;
  // Usually gRPC has let go of the gradients by now, since the chief has them; if not, it keeps them.
  std::shared_ptr<AlignedBuffer>& sent = encoded_ != nullptr ? encoded_ : gradients_;
  if (sent.use_count() > 1) {
    sent = std::make_shared<AlignedBuffer>(sent->size());
    gradients_offered_ = false;
  }
  // Dropping a reference orders what follows after the reads of whoever dropped theirs before; use_count does not.
  std::shared_ptr<AlignedBuffer>(sent).reset();
  return assignment;
}

absl::Status GrpcStepChannel::SendReports(absl::Span<const SlotReport> reports) {
  if (!status_.ok()) return Close();
  for (std::vector<SlotReport>& part : CutReports(reports, kReportBytes)) {
    if (!frame_.reports.empty()) FlushFrame();
    frame_.reports = std::move(part);
  }
  return absl::OkStatus();
}

float* GrpcStepChannel::GradientBuffer(int variable) {
  return gradients_->as<float>() + layout_.variables()[variable].flat_offset;
}

FloatChunks GrpcStepChannel::EncodeGradient(int variable, int64_t offset, int64_t elements) {
  const float* const gradient = GradientBuffer(variable) + offset;
  if (encoded_ == nullptr) return FloatChunks(gradient, elements);
  const DataType type = options_.compression.gradients;
  uint16_t* const encoded = encoded_->as<uint16_t>() + layout_.variables()[variable].flat_offset + offset;
  Encode16(type, elements, gradient, encoded);
  return FloatChunks(type, encoded, elements);
}

absl::Status GrpcStepChannel::SendGradient(int variable) {
  const auto& place = layout_.variables()[variable];
  for (int64_t offset = 0; offset < place.elements; offset += kMaxPieceElements) {
    StepPiece piece;
    piece.variable = variable;
    piece.offset = offset;
    const int64_t elements = std::min(kMaxPieceElements, place.elements - offset);
    if (shares_memory_ && gradients_offered_) {
      piece.shared = PlaceInMemory{static_cast<uint64_t>(place.flat_offset + offset) * sizeof(float),
                                   static_cast<uint64_t>(elements) * sizeof(float)};
    } else {
      piece.content = EncodeGradient(variable, offset, elements);
    }
    AddPiece(std::move(piece));
  }
  return PollWrites();
}

absl::Status GrpcStepChannel::SendDifferences(int64_t slot, int variable, int64_t offset,
                                              absl::string_view differences) {
  AddPiece(SparsePiece(slot, variable, offset, differences));
  return PollWrites();
}

void GrpcStepChannel::AddPiece(StepPiece piece) {
  frame_bytes_ += static_cast<int64_t>(piece.shared ? piece.shared->bytes : piece.content.bytes());
  frame_.gradients.push_back(std::move(piece));
  if (frame_bytes_ >= kFrameBytes) FlushFrame();
}

absl::Status GrpcStepChannel::PollWrites() {
  while (status_.ok() && write_.pending && Poll(absl::ZeroDuration())) {
  }
  return status_.ok() ? absl::OkStatus() : Close();
}

void GrpcStepChannel::Leave() {
  if (closed_ || !status_.ok()) return;
  frame_ = StepFrame();
  frame_.leave = true;
  token_.Clear();
  FlushFrame();
  // The chief ends the stream when it has read this.
  while (status_.ok() && Poll(leave_limit_)) {
  }
  Close().IgnoreError();
}

void GrpcStepChannel::Interrupt() {
  if (!interrupted_.exchange(true)) alarm_.Set(&queue_, gpr_time_0(GPR_CLOCK_MONOTONIC), &wake_);
}

void GrpcStepChannel::Cancel() { context_.TryCancel(); }

absl::Status GrpcStepChannel::Close() {
  if (closed_) return status_;
  closed_ = true;
  const bool broken = broken_;
  if (!broken) context_.TryCancel();
  while (start_.pending || read_.pending || write_.pending) {
    if (!Poll(absl::InfiniteDuration())) break;
  }
  grpc::Status result;
  finish_.pending = true;
  stream_->Finish(&result, &finish_);
  while (finish_.pending && Poll(absl::InfiniteDuration())) {
  }
  // The chief's own word says more than what broke here, unless it was here that the stream was broken off.
  if (!result.ok() && (status_.ok() || (broken && absl::IsUnavailable(status_)))) status_ = FromGrpc(result);
  if (status_.ok()) status_ = absl::UnavailableError("the chief closed the stream");
  return status_;
}

}  // namespace lockstep
