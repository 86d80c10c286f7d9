#include "lockstep/common/client/variable_parts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

template <typename... Args>
absl::Status Wrong(const Args&... args) {
  return absl::InternalError(absl::StrCat("the chief's reply to ReadVariables: ", args...));
}

}  // namespace

absl::Status VariableParts::Add(const v1::ReadVariablesReply& reply) {
  // In a listing of names, each reply has the step at which it was made, so the steps may differ.
  if (any_reply_ && !names_only_ && reply.step() != read_.step) {
    return Wrong("step ", reply.step(), " after step ", read_.step);
  }
  if (reply.part().empty()) return Wrong("no part");
  any_reply_ = true;
  read_.step = reply.step();
  for (const v1::VariablePart& part : reply.part()) RETURN_IF_ERROR(AddPart(part));
  return absl::OkStatus();
}

absl::Status VariableParts::BeginVariable(const v1::VariablePart& part) {
  const std::string name = absl::Utf8SafeCHexEscape(part.name());
  const absl::StatusOr<Shape> shape = Shape::Create(part.shape());
  if (!shape.ok()) return Wrong("variable ", name, ": ", shape.status().message());
  const uint64_t size = SizeOf(part.dtype());
  uint64_t bytes = 0;
  if (size == 0 || __builtin_mul_overflow(static_cast<uint64_t>(shape->num_elements()), size, &bytes)) {
    return Wrong("variable ", name, " is ", NameOf(part.dtype()), shape->ToString());
  }
  read_.variables.push_back({part.name(), part.dtype(), *shape, Tensor()});
  content_.clear();
  wanted_ = names_only_ ? 0 : bytes;
  return absl::OkStatus();
}

absl::Status VariableParts::AddPart(const v1::VariablePart& part) {
  if (!part.name().empty()) {
    if (!whole()) return Wrong(part.name(), " begins ", wanted_ - content_.size(), " bytes too early");
    RETURN_IF_ERROR(BeginVariable(part));
  } else if (read_.variables.empty() || whole()) {
    return Wrong("a part that continues nothing");
  }
  VariablesAtStep::Variable& variable = read_.variables.back();
  if (part.content().size() > wanted_ - content_.size()) {
    return Wrong(part.content().size(), " bytes for ", variable.name, ", which lacks ", wanted_ - content_.size());
  }
  content_ += part.content();
  if (names_only_ || !whole()) return absl::OkStatus();
  variable.value = Tensor(variable.dtype, variable.shape);
  std::copy(content_.begin(), content_.end(), variable.value.data());
  return absl::OkStatus();
}

absl::StatusOr<VariablesAtStep> VariableParts::Take() {
  if (read_.variables.empty()) return Wrong("nothing");
  if (!whole()) return Wrong(read_.variables.back().name, " lacks ", wanted_ - content_.size(), " bytes");
  return std::move(read_);
}

}  // namespace lockstep
