#ifndef LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_STATE_H_
#define LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::train {

// The state that a hook keeps in checkpoints (Hook::State), as named values. Numbers are preserved bit for bit. A value
// type.
class HookState {
 public:
  // Returns InvalidArgument if Serialize did not write `text`.
  static absl::StatusOr<HookState> Parse(absl::string_view text);
  // Returns the state as text, which is never empty.
  std::string Serialize() const;

  void SetInt(const std::string& name, int64_t value);
  void SetDouble(const std::string& name, double value);
  void SetText(const std::string& name, std::string value) { values_[name] = std::move(value); }

  // Each returns InvalidArgument naming the value if it is absent or of another kind.
  absl::Status GetInt(const std::string& name, int64_t* value) const;
  absl::Status GetDouble(const std::string& name, double* value) const;
  absl::Status GetText(const std::string& name, std::string* value) const;

  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_STATE_H_
