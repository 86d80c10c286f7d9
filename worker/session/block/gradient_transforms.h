#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_TRANSFORMS_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_TRANSFORMS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// A sink that applies optimizer.multipliers and optimizer.clip to the gradients of a slot on their way from the model
// to `sink`: it multiplies, then clips by value, by norm and by global norm. Each gradient is passed on as soon as it
// is final; with a global norm, however, all of them are passed on together after the last one. If a norm is not
// finite, every gradient that it scales becomes NaN. Use it from one thread.
class GradientTransforms : public ForwardingSink {
 public:
  // `sink` must outlive this object. Returns InvalidArgument for a multiplier that matches no trainable variable.
  static absl::StatusOr<std::unique_ptr<GradientTransforms>> Create(const config::v1::OptimizerConfig& config,
                                                                    const v1::ModelSpec& model, GradientSink* sink);

  bool OnLoss(float loss) override;
  void OnGradient(int variable) override;

 private:
  struct Variable {
    int64_t elements = 0;
    float factor = 1;
  };

  GradientTransforms(const config::v1::OptimizerConfig::Clip& clip, const v1::ModelSpec& model, GradientSink* sink);
  absl::Status Multiply(const config::v1::OptimizerConfig::Multiplier& multiplier, const v1::ModelSpec& model);
  absl::Span<float> Gradient(int variable);
  // Scales the held gradients and passes them on in order of arrival.
  void ReleaseHeld();

  const config::v1::OptimizerConfig::Clip clip_;
  // Indexed by variable. Untrained variables have no gradients.
  std::vector<Variable> variables_;
  size_t trainable_ = 0;
  // Variables whose gradients are final but are held until the global norm is known.
  std::vector<int> held_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_TRANSFORMS_H_
