#ifndef LOCKSTEP_TRAIN_SLIM_GRADIENTS_H_
#define LOCKSTEP_TRAIN_SLIM_GRADIENTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/train/events/summary_builder.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep::train::slim {

// A variable and its gradient for one slot of a step. A view.
struct GradientAndVariable {
  bool has_gradient() const { return gradient.data() != nullptr; }

  // The gradient, row-major, modified in place. Null if the loss does not depend on the variable.
  absl::Span<float> gradient;
  const v1::VariableSpec* variable = nullptr;
};

// A factor, or a function that computes it from the global step alone.
using GradientMultiplier = std::variant<float, std::function<float(int64_t global_step)>>;
// The key of a variable in a map: made from the variable or from its name.
struct VariableKey {
  VariableKey(const v1::VariableSpec& variable) : name(variable.name()) {}  // NOLINT: a variable is a key
  VariableKey(std::string name) : name(std::move(name)) {}                  // NOLINT
  VariableKey(const char* name) : name(name) {}                             // NOLINT
  bool operator<(const VariableKey& other) const { return name < other.name; }

  std::string name;
};
using GradientMultipliers = std::map<VariableKey, GradientMultiplier>;

// Changes all gradients of a slot together. The result must depend on the arguments alone, bit for bit.
using TransformGradsFn =
    std::function<absl::Status(std::vector<GradientAndVariable>& grads_and_vars, int64_t global_step)>;

// Multiplies the gradients of the named variables. Ignores names that no variable has. `global_step` is the step before
// the update. Returns InvalidArgument if there are no multipliers, or if a named variable has no gradient.
absl::Status MultiplyGradients(std::vector<GradientAndVariable>& grads_and_vars,
                               const GradientMultipliers& gradient_multipliers, int64_t global_step);

// Clips each gradient by its own L2 norm: g * max_norm / |g|, unless |g| <= max_norm.
void ClipGradientNorms(std::vector<GradientAndVariable>& grads_and_vars, float max_norm);
TransformGradsFn ClipGradientNormsFn(float max_norm);

// Adds a histogram "<variable>/gradient" and the norm "<variable>/gradient_norm" for each gradient. Logs missing
// gradients. Returns InvalidArgument naming a gradient with a non-finite value.
absl::Status AddGradientsSummaries(const std::vector<GradientAndVariable>& grads_and_vars, SummaryBuilder* summaries);

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_GRADIENTS_H_
