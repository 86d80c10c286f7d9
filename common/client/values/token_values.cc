#include "lockstep/common/client/values/token_values.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/float_chunks.h"

namespace lockstep {
namespace {

// The chief alternates between two versions, and uses a third while an old one is held.
constexpr size_t kMaxVersions = 4;

}  // namespace

absl::StatusOr<const std::vector<const float*>*> SharedValues::Find(const v1::SharedMemoryHandle& handle) {
  const auto known = std::find_if(versions_.begin(), versions_.end(), [&handle](const auto& version) {
    return IsSameMemory(version->memory->handle(), handle);
  });
  if (known != versions_.end()) {
    std::rotate(known, known + 1, versions_.end());
    return &versions_.back()->variables;
  }
  const uint64_t bytes = static_cast<uint64_t>(layout_.flat_elements()) * sizeof(float);
  if (handle.bytes() != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chief's memory has ", handle.bytes(), " bytes, the values ", bytes));
  }
  auto version = std::make_unique<Version>();
  auto memory = SharedMemory::Map(handle);
  // The chief's memory was reachable when the session began, so its process is gone.
  if (absl::IsNotFound(memory.status())) return absl::UnavailableError(memory.status().message());
  RETURN_IF_ERROR(memory.status());
  version->memory = *std::move(memory);
  const auto* const flat = reinterpret_cast<const float*>(version->memory->data());
  for (const auto& variable : layout_.variables()) version->variables.push_back(flat + variable.flat_offset);
  if (versions_.size() == kMaxVersions) versions_.erase(versions_.begin());
  versions_.push_back(std::move(version));
  return &versions_.back()->variables;
}

const std::vector<const float*>* InProcessValues::Take(const HandedOverValues& values) {
  if (values.flat == version_) return &variables_;
  version_ = values.flat;
  variables_.clear();
  for (const auto& variable : layout_.variables()) {
    if (values.encoded == nullptr || !variable.spec.trainable()) {
      variables_.push_back(version_->as<float>() + variable.flat_offset);
      continue;
    }
    if (decoded_.size() == 0) decoded_ = AlignedBuffer(static_cast<size_t>(layout_.flat_elements()) * sizeof(float));
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
    ASSIGN_OR_RETURN(variables_, shared_.Find(*reply.values_memory));
    mapped_ = true;
  } else {
    ASSIGN_OR_RETURN(variables_, received_.Take(reply.token->step()));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
