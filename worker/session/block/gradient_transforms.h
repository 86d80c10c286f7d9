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

// Applies optimizer.multipliers and optimizer.clip to the gradients of a slot on their way from the model to `sink`:
// multiplies, then clips by value, by norm and by global norm. Each variable is passed on as soon as it is final, but
// with a global norm all are passed on together, after the last one. A norm that is not finite makes every gradient it
// scales NaN. For one thread.
class GradientTransforms : public GradientSink {
 public:
  // `sink` must outlive this. InvalidArgument for a multiplier that matches no trainable variable.
  static absl::StatusOr<std::unique_ptr<GradientTransforms>> Create(const config::v1::OptimizerConfig& config,
                                                                    const v1::ModelSpec& model, GradientSink* sink);

  bool OnLoss(float loss) override;
  absl::Status OnSummary(const v1::Summary& summary) override { return sink_->OnSummary(summary); }
  absl::Status OnMetric(const std::string& name, float value) override { return sink_->OnMetric(name, value); }
  void RequestStop() override { sink_->RequestStop(); }
  void OnWeight(float weight) override { sink_->OnWeight(weight); }
  void OnUpdate(int index, absl::Span<const float> value) override { sink_->OnUpdate(index, value); }
  float* GradientBuffer(int variable) override { return sink_->GradientBuffer(variable); }
  void OnGradient(int variable) override;

 private:
  struct Variable {
    int64_t elements = 0;
    float factor = 1;
  };

  GradientTransforms(const config::v1::OptimizerConfig::Clip& clip, const v1::ModelSpec& model, GradientSink* sink);
  absl::Status Multiply(const config::v1::OptimizerConfig::Multiplier& multiplier, const v1::ModelSpec& model);
  absl::Span<float> Gradient(int variable);
  // Scales the held gradients and hands them on in the order of their coming.
  void ReleaseHeld();

  const config::v1::OptimizerConfig::Clip clip_;
  GradientSink* const sink_;
  // By index; those that are not trained have no gradients.
  std::vector<Variable> variables_;
  size_t trainable_ = 0;
  // Final, but their global norm is not known yet.
  std::vector<int> held_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_TRANSFORMS_H_
