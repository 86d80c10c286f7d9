#include "lockstep/common/client/streamed_step_channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/trace_recorder.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/step/step_times.h"
#include "lockstep/common/tensor/float_chunks.h"

namespace lockstep {
namespace {

// The chief alternates between two versions, and uses a third while an old one is held.
constexpr size_t kMaxVersions = 4;

// Returns true if the chief is expected to be able to map gradients, because it offers its own memory and this process
// can map that memory.
bool SharesMemory(const ChiefClient::StepOptions& options) {
  if (!options.chief_memory) return false;
  const absl::Status status = SharedMemory::Map(*options.chief_memory).status();
  if (!status.ok()) LOG(INFO) << "tensors travel as bytes, the chief's memory is not shared: " << status.message();
  return status.ok();
}

StepFrame FirstFrame(const ChiefClient::StepOptions& options, const GradientBuffer& gradients) {
  StepFrame first;
  first.session_id = options.session_id;
  first.generation = options.generation;
  first.startup_delay_steps = options.startup_delay_steps;
  if (gradients.handle() != nullptr) first.gradient_memory = *gradients.handle();
  return first;
}

// Maps the chief's memory, which must hold `elements` floats. `what` is the name of its contents, for errors.
absl::StatusOr<std::unique_ptr<SharedMemory>> MapFloats(const v1::SharedMemoryHandle& handle, absl::string_view what,
                                                        int64_t elements) {
  const uint64_t bytes = static_cast<uint64_t>(elements) * sizeof(float);
  if (handle.bytes() != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chief's memory has ", handle.bytes(), " bytes, the ", what, " ", bytes));
  }
  auto memory = SharedMemory::Map(handle);
  // The chief's memory was reachable when the session began, so its process is gone.
  if (absl::IsNotFound(memory.status())) return absl::UnavailableError(memory.status().message());
  return memory;
}

}  // namespace

absl::StatusOr<SharedValues::Version*> SharedValues::FindVersion(const v1::SharedMemoryHandle& handle) {
  const auto known = std::find_if(versions_.begin(), versions_.end(), [&handle](const auto& version) {
    return IsSameMemory(version->memory->handle(), handle);
  });
  if (known != versions_.end()) {
    std::rotate(known, known + 1, versions_.end());
    return versions_.back().get();
  }
  auto version = std::make_unique<Version>();
  ASSIGN_OR_RETURN(version->memory, MapFloats(handle, "values", layout_.constants_offset()));
  const auto* const flat = reinterpret_cast<const float*>(version->memory->data());
  for (const auto& variable : layout_.variables()) {
    version->variables.push_back(variable.constant ? nullptr : flat + variable.flat_offset);
  }
  if (versions_.size() == kMaxVersions) versions_.erase(versions_.begin());
  versions_.push_back(std::move(version));
  return versions_.back().get();
}

absl::Status SharedValues::FindConstants(const v1::SharedMemoryHandle* handle) {
  if (layout_.constant_elements() == 0) return absl::OkStatus();
  if (handle == nullptr) return absl::InvalidArgumentError("the chief's memory lacks the constant variables");
  if (constants_ != nullptr && IsSameMemory(constants_->handle(), *handle)) return absl::OkStatus();
  ASSIGN_OR_RETURN(constants_, MapFloats(*handle, "constant variables", layout_.constant_elements()));
  return absl::OkStatus();
}

absl::StatusOr<const std::vector<const float*>*> SharedValues::Find(const v1::SharedMemoryHandle& handle,
                                                                    const v1::SharedMemoryHandle* constants) {
  ASSIGN_OR_RETURN(Version* const version, FindVersion(handle));
  RETURN_IF_ERROR(FindConstants(constants));
  for (size_t i = 0; constants_ != nullptr && i < version->variables.size(); ++i) {
    const ParameterLayout::Variable& variable = layout_.variables()[i];
    if (!variable.constant) continue;
    const auto* const flat = reinterpret_cast<const float*>(constants_->data());
    version->variables[i] = flat + layout_.OffsetInConstants(variable.flat_offset);
  }
  return &version->variables;
}

const std::vector<const float*>* InProcessValues::Take(const HandedOverValues& values) {
  if (values.flat == version_ && values.constants == constants_) return &variables_;
  version_ = values.flat;
  constants_ = values.constants;
  variables_.clear();
  for (const auto& variable : layout_.variables()) {
    if (variable.constant) {
      variables_.push_back(constants_->as<float>() + layout_.OffsetInConstants(variable.flat_offset));
      continue;
    }
    if (values.encoded == nullptr || !variable.spec.trainable()) {
      variables_.push_back(version_->as<float>() + variable.flat_offset);
      continue;
    }
    if (decoded_.size() == 0) decoded_ = AlignedBuffer(static_cast<size_t>(layout_.trained_elements()) * sizeof(float));
    float* const decoded = decoded_.as<float>() + variable.flat_offset;
    FloatChunks(values.type, values.encoded + variable.flat_offset, variable.elements)
        .CopyTo(0, variable.elements, decoded);
    variables_.push_back(decoded);
  }
  return &variables_;
}

TokenValues::TokenValues(const ParameterLayout* layout, v1::DataType type, VariableBuffers* buffers)
    : received_(layout, type, buffers), shared_(layout), in_process_(layout) {}

absl::Status TokenValues::OnReply(const StepReplyFrame& reply) {
  for (const StepPiece& piece : reply.values) {
    RETURN_IF_ERROR(received_.Receive(reply.values_step, piece));
  }
  return reply.token ? Take(reply) : absl::OkStatus();
}

absl::Status TokenValues::Take(const StepReplyFrame& reply) {
  mapped_ = false;
  if (reply.handed_over) {
    variables_ = in_process_.Take(*reply.handed_over);
  } else if (reply.values_memory) {
    const v1::SharedMemoryHandle* const constants = reply.constants_memory ? &*reply.constants_memory : nullptr;
    ASSIGN_OR_RETURN(variables_, shared_.Find(*reply.values_memory, constants));
    mapped_ = true;
  } else {
    const v1::Token& token = *reply.token;
    ASSIGN_OR_RETURN(variables_, received_.Take(token.has_values_step() ? token.values_step() : token.step()));
  }
  return absl::OkStatus();
}

StreamedStepChannel::StreamedStepChannel(std::unique_ptr<StepStream> stream, const ChiefClient::StepOptions& options,
                                         ParameterLayout layout)
    : layout_(std::move(layout)),
      slots_(options.slots),
      sparse_(options.compression.top_k > 0),
      idle_(options.idle),
      stream_(std::move(stream)),
      buffers_(layout_, sizeof(float)),
      gradients_(&layout_, options.compression.gradients, SharesMemory(options), &buffers_),
      frames_(FirstFrame(options, gradients_), stream_->sizes()),
      values_(&layout_, options.compression.values, &buffers_),
      estimates_(&layout_, slots_) {
  if (options.clock != nullptr) timer_.emplace(options.clock);
}

absl::Status StreamedStepChannel::Check(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return status_;
}

absl::Status StreamedStepChannel::Send(const StepFrame& frame) {
  RETURN_IF_ERROR(status_);
  return Check(stream_->Send(frame));
}

absl::StatusOr<StepChannel::Assignment> StreamedStepChannel::AwaitToken() {
  if (frames_.token().slot_count() > 0) estimates_.Advance();
  values_.Release();
  awaits_token_ = true;
  if (timer_) {
    timer_->Enter(StepTimer::Phase::kWait);
    frames_.SetTimes(EncodeStepTimes(timer_->Take()));
  }
  RETURN_IF_ERROR(Send(frames_.End()));
  if (!assignment_) {
    const absl::StatusOr<bool> received = stream_->Receive(this);
    RETURN_IF_ERROR(Check(received.status()));
    if (!*received) return absl::CancelledError("the wait for a token was cancelled");
  }
  awaits_token_ = false;
  absl::StatusOr<Assignment> assignment = *std::move(assignment_);
  assignment_.reset();
  assignment->result = std::exchange(result_, v1::CONTRIBUTION_NONE);
  if (!assignment->finished) assignment->values = values_.values();
  frames_.Begin(assignment->token);
  gradients_.Reclaim();
  if (timer_) timer_->Enter(StepTimer::Phase::kCompute);
  return assignment;
}

absl::StatusOr<bool> StreamedStepChannel::OnReply(const StepReplyFrame& reply) {
  TraceSpan span("receive");
  if (reply.result != v1::CONTRIBUTION_NONE) result_ = reply.result;
  if (reply.token) RETURN_IF_ERROR(CheckToken(*reply.token));
  RETURN_IF_ERROR(values_.OnReply(reply));
  for (const StepPiece& piece : reply.estimates) {
    RETURN_IF_ERROR(estimates_.Receive(reply.estimates_step, piece));
  }
  if (!reply.token && !reply.finished) return true;
  Assignment assignment;
  assignment.finished = reply.finished;
  assignment.finish_message = reply.finish_message;
  if (reply.token) assignment.token = *reply.token;
  if (reply.token) assignment.settings = reply.settings;
  if (reply.token && sparse_) {
    RETURN_IF_ERROR(TakeEstimates(reply));
    assignment.estimates = token_estimates_;
  }
  assignment_ = std::move(assignment);
  return false;
}

absl::Status StreamedStepChannel::CheckToken(const v1::Token& token) const {
  if (!awaits_token_) {
    return absl::InvalidArgumentError(absl::StrCat("a token for step ", token.step(), " that was not asked for"));
  }
  if (token.slot_count() <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("a token for step ", token.step(), " without slots"));
  }
  if (token.has_stream() != token.has_position() ||
      (token.has_stream() && (token.slot_count() != 1 || token.stream() < 0 || token.position() < 0))) {
    return absl::InvalidArgumentError(absl::StrCat("a token for ", token.slot_count(), " slots of step ", token.step(),
                                                   " and batch ", token.position(), " of stream ", token.stream()));
  }
  if (token.first_slot() >= 0 && token.first_slot() < slots_ && token.slot_count() <= slots_ - token.first_slot()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("a token for ", token.slot_count(), " slots of step ", token.step(),
                                                 " from ", token.first_slot(), " on; a step has ", slots_));
}

absl::Status StreamedStepChannel::TakeEstimates(const StepReplyFrame& reply) {
  const v1::Token& token = *reply.token;
  const size_t handed_over = reply.handed_over ? reply.handed_over->estimates.size() : 0;
  for (size_t i = 0; i < handed_over; ++i) {
    const int64_t slot = token.first_slot() + static_cast<int64_t>(i);
    if (!estimates_.Holds(token.step(), slot)) {
      estimates_.Copy(token.step(), slot, *reply.handed_over->estimates[i]);
    }
  }
  ASSIGN_OR_RETURN(token_estimates_, estimates_.Take(token.step(), {token.first_slot(), token.slot_count()}));
  return absl::OkStatus();
}

absl::Status StreamedStepChannel::SendReports(absl::Span<const v1::SlotReport> reports) {
  const StepTimer::Scope send(timer(), StepTimer::Phase::kSend);
  for (const StepFrame& frame : frames_.AddReports(reports)) RETURN_IF_ERROR(Send(frame));
  return status_;
}

absl::Status StreamedStepChannel::SendGradient(int variable) {
  const StepTimer::Scope send(timer(), StepTimer::Phase::kSend);
  const int64_t elements = layout_.variables()[variable].elements;
  const int64_t limit = std::min(elements, stream_->sizes().piece_elements);
  for (int64_t offset = 0; offset < elements; offset += limit) {
    const int64_t size = std::min(limit, elements - offset);
    RETURN_IF_ERROR(AddPiece(gradients_.Piece(variable, offset, size, /*in_place=*/values_.mapped())));
  }
  gradients_.Sent(variable);
  RETURN_IF_ERROR(status_);
  return Check(stream_->Poll(this));
}

absl::Status StreamedStepChannel::SendDifferences(int64_t slot, int variable, int64_t offset,
                                                  absl::string_view differences) {
  const StepTimer::Scope send(timer(), StepTimer::Phase::kSend);
  RETURN_IF_ERROR(AddPiece(SparsePiece(slot, variable, offset, differences)));
  RETURN_IF_ERROR(status_);
  return Check(stream_->Poll(this));
}

absl::Status StreamedStepChannel::SendDigests(absl::Span<const uint64_t> digests) {
  frames_.SetDigests(digests);
  return status_;
}

absl::Status StreamedStepChannel::SendEndOfInput() {
  frames_.SetEndOfInput();
  return status_;
}

absl::Status StreamedStepChannel::AddPiece(StepPiece piece) {
  const absl::optional<StepFrame> frame = frames_.AddPiece(std::move(piece));
  return frame ? Send(*frame) : absl::OkStatus();
}

void StreamedStepChannel::Leave() {
  if (!Send(frames_.Leave()).ok()) return;
  stream_->Drain();
  Check(stream_->Close()).IgnoreError();
}

}  // namespace lockstep
