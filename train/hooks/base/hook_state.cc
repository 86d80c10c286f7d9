#include "lockstep/train/hooks/base/hook_state.h"

#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {
namespace {

constexpr char kFormat[] = "hook-state-1\n";

// Appends a netstring: the number of bytes, ":" and the bytes. Any text may therefore be a value.
void AppendPart(absl::string_view part, std::string* text) { absl::StrAppend(text, part.size(), ":", part, "\n"); }

absl::Status Malformed() { return absl::InvalidArgumentError("not a state that a hook has written"); }

absl::StatusOr<std::string> TakePart(absl::string_view* text) {
  const size_t colon = text->find(':');
  uint64_t size = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text->substr(0, colon), &size)) return Malformed();
  text->remove_prefix(colon + 1);
  if (text->size() <= size || (*text)[size] != '\n') return Malformed();
  std::string part(text->substr(0, size));
  text->remove_prefix(size + 1);
  return part;
}

}  // namespace

absl::StatusOr<HookState> HookState::Parse(absl::string_view text) {
  HookState state;
  const absl::string_view format(kFormat);
  if (text.substr(0, format.size()) != format) return Malformed();
  text.remove_prefix(format.size());
  while (!text.empty()) {
    ASSIGN_OR_RETURN(std::string name, TakePart(&text));
    ASSIGN_OR_RETURN(std::string value, TakePart(&text));
    if (!state.values_.emplace(std::move(name), std::move(value)).second) return Malformed();
  }
  return state;
}

std::string HookState::Serialize() const {
  std::string text = kFormat;
  for (const auto& [name, value] : values_) {
    AppendPart(name, &text);
    AppendPart(value, &text);
  }
  return text;
}

void HookState::SetInt(const std::string& name, int64_t value) { values_[name] = absl::StrCat(value); }

void HookState::SetDouble(const std::string& name, double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  values_[name] = absl::StrCat(absl::Hex(bits, absl::kZeroPad16));
}

absl::Status HookState::GetText(const std::string& name, std::string* value) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return absl::InvalidArgumentError(absl::StrCat("the state has no ", name));
  *value = found->second;
  return absl::OkStatus();
}

absl::Status HookState::GetInt(const std::string& name, int64_t* value) const {
  std::string text;
  RETURN_IF_ERROR(GetText(name, &text));
  if (absl::SimpleAtoi(text, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the state's ", name, " is no whole number"));
}

absl::Status HookState::GetDouble(const std::string& name, double* value) const {
  std::string text;
  RETURN_IF_ERROR(GetText(name, &text));
  uint64_t bits = 0;
  if (text.size() != 16 || !absl::SimpleHexAtoi(text, &bits)) {
    return absl::InvalidArgumentError(absl::StrCat("the state's ", name, " is no number"));
  }
  std::memcpy(value, &bits, sizeof(bits));
  return absl::OkStatus();
}

}  // namespace lockstep::train
