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

// A scalar that an optimizer keeps in addition to the variables, such as Adam's beta1_power and beta2_power. As in
// TensorFlow, a checkpoint stores it under its own name.
struct OptimizerScalar {
  std::string name;
  float value = 0;
};

// An update rule that is applied element by element: an element's new value depends only on its old value, its
// gradient, its slots and a few numbers that are set for each step, so several threads may update variables in pieces
// and in any order. The formulas come from TensorFlow's training ops (tensorflow/core/kernels/training_ops.cc) and from
// PyTorch, and are computed in float. Several threads may call Apply() between BeginStep() and EndStep(); otherwise not
// thread-safe.
class Optimizer {
 public:
  // Creates the configuration's rule, without its groups (optimizer_groups.h). Returns InvalidArgument, naming the
  // field, if one is out of range.
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(const config::v1::OptimizerConfig& config);

  virtual ~Optimizer() = default;

  // A per-element state array. Its key in a checkpoint is "<variable>/<name>".
  struct State {
    std::string name;     // "Momentum", "Adam", "Adam_1", ...
    float initial_value;  // of every element
    // True if the state starts with the variable's own first value instead.
    bool starts_at_value = false;
  };
  virtual absl::Span<const State> state() const = 0;

  // Computes the numbers that Apply uses for the next update from that update's learning rate.
  virtual void BeginStep(float learning_rate) = 0;
  // Sets the global step after the next update. Call after BeginStep.
  virtual void SetGlobalStep(int64_t) {}
  // Completes the update and advances the beta powers.
  virtual void EndStep() {}

  // Updates n elements. The rule's gradient is gradient[i] / gradient_divisor (a sum over slots divided by their
  // number), one float division. Pointers need no alignment. `*_out` may equal the input of the same kind, and
  // `value_out` may equal the gradient, but they must not overlap otherwise. state_in[k] and state_out[k] are the
  // arrays of state()[k]. They lack the last one, the moving average, if the variable has none.
  virtual void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
                     absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const = 0;

  // Return and restore the scalars that a checkpoint keeps in addition to the slots. Unknown names are ignored.
  virtual std::vector<OptimizerScalar> scalars() const { return {}; }
  virtual void RestoreScalars(absl::Span<const OptimizerScalar> scalars) {}
};

// Returns InvalidArgument if the states of a variable after a change of its optimizer are different than before,
// because the optimizer is of a different kind or has a different setting that affects the state.
absl::Status CheckSameState(absl::Span<const Optimizer::State> before, absl::Span<const Optimizer::State> after);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_OPTIMIZER_H_
