#ifndef LOCKSTEP_TRAIN_SESSION_CHOICE_H_
#define LOCKSTEP_TRAIN_SESSION_CHOICE_H_

#include <utility>

#include "absl/types/optional.h"

namespace lockstep::train {

// Disables an option: Choice<T> x = kNone.
struct None {};
constexpr None kNone;

// An option that is left at its default, disabled, or set. A value type.
template <typename T>
class Choice {
 public:
  // Leaves the option at its default.
  Choice() = default;
  Choice(None) : is_default_(false) {}                               // NOLINT: an option is assigned
  Choice(T value) : is_default_(false), value_(std::move(value)) {}  // NOLINT
  template <typename U, typename = decltype(T(std::declval<U&&>()))>
  Choice(U&& value) : is_default_(false), value_(T(std::forward<U>(value))) {}  // NOLINT: a lambda for a function

  bool is_default() const { return is_default_; }
  bool is_none() const { return !is_default_ && !value_; }
  bool is_given() const { return value_.has_value(); }

  // Returns `value` if the option is left at its default, nullopt if it is disabled, and its own value otherwise.
  absl::optional<T> Or(absl::optional<T> value) const { return is_default_ ? std::move(value) : value_; }
  // Returns `other` if the option is left at its default, and this one otherwise.
  Choice Else(const Choice& other) const { return is_default_ ? other : *this; }

 private:
  bool is_default_ = true;
  absl::optional<T> value_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_CHOICE_H_
