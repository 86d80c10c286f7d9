#ifndef LOCKSTEP_SERVER_OPTIMIZER_OPTIMIZER_H_
#define LOCKSTEP_SERVER_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/config/v1/optimizer.pb.h"

namespace lockstep {

// A scalar that an optimizer keeps in addition to the variables and that a checkpoint holds under its own
// name, as TensorFlow does: beta1_power and beta2_power of Adam.
struct OptimizerScalar {
  std::string name;
  float value = 0;
};

// One update rule, element by element: an element's new value depends on the old value, the
// gradient, the slots of that element and the numbers of the step alone, so variables may be
// updated in pieces, in any order, by several threads. The formulas are those of TensorFlow's
// training ops (tensorflow/core/kernels/training_ops.cc), in float.
// Apply() may run on several threads between BeginStep() and EndStep(); all else is for one thread at a time.
class Optimizer {
 public:
  // Errors: InvalidArgument names the field that is out of its range.
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(const config::v1::OptimizerConfig& config);

  virtual ~Optimizer() = default;

  // A per-element state array: the checkpoint's key is "<variable>/<name>".
  struct State {
    std::string name;     // "Momentum", "Adam", "Adam_1", ...
    float initial_value;  // of every element
    // It begins with the variable's own first value instead.
    bool starts_at_value = false;
  };
  virtual absl::Span<const State> state() const = 0;

  // The numbers that Apply uses for the coming update, from the learning rate of that step.
  virtual void BeginStep(float learning_rate) = 0;
  // The coming update makes the global step this one. After BeginStep.
  virtual void SetGlobalStep(int64_t) {}
  // The update is complete: beta powers advance.
  virtual void EndStep() {}

  // Updates n elements. The rule's gradient is gradient[i] / gradient_divisor (a sum over slots and
  // their number), one float division. Pointers need no alignment; `*_out` may be
  // the same memory as the input of the same kind, and `value_out` as the gradient, but must not overlap them
  // otherwise. state_in[k] and state_out[k] are the arrays of state()[k].
  virtual void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
                     absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const = 0;

  // What a checkpoint keeps in addition to the slots, and its restoration (unknown names are ignored).
  virtual std::vector<OptimizerScalar> scalars() const { return {}; }
  virtual void RestoreScalars(absl::Span<const OptimizerScalar> scalars) {}
};

// InvalidArgument when the second optimizer's state is not that of the first: it is of another kind, or a setting of it
// makes the state another.
absl::Status CheckSameState(const Optimizer& before, const Optimizer& after);
// The same of two configurations, or what is wrong with one of them.
absl::Status CheckSameState(const config::v1::OptimizerConfig& before, const config::v1::OptimizerConfig& after);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_OPTIMIZER_H_
