#ifndef LOCKSTEP_TRAIN_SESSION_CHOICE_H_
#define LOCKSTEP_TRAIN_SESSION_CHOICE_H_

#include <utility>

#include "absl/types/optional.h"

namespace lockstep::train {

// Switches an option off: Choice<T> x = kNone.
struct None {};
constexpr None kNone;

// An option that is left to its default, switched off, or given. A value.
template <typename T>
class Choice {
 public:
  // The default.
  Choice() = default;
  Choice(None) : is_default_(false) {}                               // NOLINT: an option is assigned
  Choice(T value) : is_default_(false), value_(std::move(value)) {}  // NOLINT
  template <typename U, typename = decltype(T(std::declval<U&&>()))>
  Choice(U&& value) : is_default_(false), value_(T(std::forward<U>(value))) {}  // NOLINT: a lambda for a function

  bool is_default() const { return is_default_; }
  bool is_none() const { return !is_default_ && !value_; }
  bool is_given() const { return value_.has_value(); }

  // What counts where the default is `value`; nullopt when it is switched off.
  absl::optional<T> Or(absl::optional<T> value) const { return is_default_ ? std::move(value) : value_; }
  // This one, unless it is left to its default: then `other`.
  Choice Else(const Choice& other) const { return is_default_ ? other : *this; }

 private:
  bool is_default_ = true;
  absl::optional<T> value_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_CHOICE_H_
