#include "lockstep/common/client/values/shared_values.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

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

}  // namespace lockstep
