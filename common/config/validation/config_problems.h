#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_CONFIG_PROBLEMS_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_CONFIG_PROBLEMS_H_

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The problems of a configuration, one line each. A line has the field, its value and the requirement. Fields are named
// by their path, such as "optimizer.adam.beta1". Not thread-safe.
class ConfigProblems {
 public:
  // `prefix` is prepended to the path of every field.
  explicit ConfigProblems(std::string prefix = "") : prefix_(std::move(prefix)) {}

  void Add(absl::string_view field, absl::string_view what) {
    lines_.push_back(absl::StrCat(prefix_, field, " ", what));
  }
  void AddAll(const ConfigProblems& other) { lines_.insert(lines_.end(), other.lines_.begin(), other.lines_.end()); }

  // Each check takes an integer or a floating-point number; the latter must be finite.
  template <typename T>
  void RequirePositive(absl::string_view field, T value) {
    Require(field, value, value > 0, IsFloat<T>() ? "a finite number above 0" : "above 0");
  }
  template <typename T>
  void RequireNotNegative(absl::string_view field, T value) {
    Require(field, value, value >= 0, IsFloat<T>() ? "a finite number, 0 or more" : "0 or more");
  }
  template <typename T>
  void RequireFinite(absl::string_view field, T value) {
    Require(field, value, true, "a finite number");
  }
  // Requires a value in [0, 1).
  void RequireFraction(absl::string_view field, float value) {
    Require(field, value, value >= 0 && value < 1, "in [0, 1)");
  }
  // Requires a value in [0, 1].
  void RequireFractionOrOne(absl::string_view field, float value) {
    Require(field, value, value >= 0 && value <= 1, "in [0, 1]");
  }
  void RequireText(absl::string_view field, absl::string_view value) {
    if (value.empty()) Add(field, "is empty");
  }
  // See variable_expression.h.
  void RequireExpression(absl::string_view field, const std::string& value);

  template <typename T>
  void Require(absl::string_view field, T value, bool holds, absl::string_view must) {
    if (!holds || !std::isfinite(static_cast<double>(value)))
      Add(field, absl::StrCat("is ", value, ", must be ", must));
  }

  // Returns OK if there are no problems, otherwise InvalidArgument with the lines.
  absl::Status ToStatus() const;

 private:
  template <typename T>
  static constexpr bool IsFloat() {
    return std::is_floating_point<T>::value;
  }

  const std::string prefix_;
  std::vector<std::string> lines_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_CONFIG_PROBLEMS_H_
