// A model for two classes that the built-in layers cannot express. Each feature passes through its own curve before the
// sum: logit = bias + the sum over i of weight_i tanh(scale_i x_i).
#include <algorithm>
#include <cmath>

#include "lockstep/cli/lockstep_program.h"
#include "lockstep/kernels/portable_math.h"
#include "lockstep/worker/nn/model_registry.h"

namespace lockstep {

class AdditiveModel : public Model {
 public:
  explicit AdditiveModel(int64_t features) : features_(features) {
    Declare("bias", 1, 0);
    Declare("weight", features, 0);
    Declare("scale", features, 1);
  }
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey&,
                                GradientSink* sink) override {
    float* const gradients[] = {sink->GradientBuffer(0), sink->GradientBuffer(1), sink->GradientBuffer(2)};
    for (int i = 0; i < 3; ++i) std::fill_n(gradients[i], spec_.variables(i).shape(0), 0.0f);
    if (!sink->OnLoss(Pass(values, batch, nullptr, gradients))) return absl::CancelledError("not wanted any more");
    for (int i = 0; i < 3; ++i) sink->OnGradient(i);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Predict(VariableValues values, const Batch& batch) override {
    Tensor logits(v1::DT_FLOAT, Shape({batch.size, 1}));
    Pass(values, batch, logits.flat<float>().data(), nullptr);
    return logits;
  }
  absl::StatusOr<float> EvaluateLoss(VariableValues values, const Batch& batch) override {
    return Pass(values, batch, nullptr, nullptr);
  }

 private:
  void Declare(const std::string& name, int64_t size, float value) {
    v1::VariableSpec* variable = spec_.add_variables();
    variable->set_name(name);
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(size);
    variable->set_trainable(true);
    variable->mutable_initializer()->mutable_constant()->set_value(value);
  }
  // Does not use <cmath>, because the last bits of its functions depend on the C library and the processor.
  static float Exp(float x) { return static_cast<float>(portable::Exp(x)); }
  static float Tanh(float x) { return static_cast<float>(portable::Tanh(x)); }

  // Returns the mean cross-entropy. If requested, writes the logits and adds the gradients.
  float Pass(VariableValues values, const Batch& batch, float* logits, float* const* gradients) {
    double loss = 0;
    for (int64_t example = 0; example < batch.size; ++example) {
      const float* x = batch.features.flat<float>().data() + example * features_;
      float logit = values[0][0];
      for (int64_t i = 0; i < features_; ++i) logit += values[1][i] * Tanh(values[2][i] * x[i]);
      const float label = static_cast<float>(batch.labels.flat<int32_t>()[example]);
      loss += std::max(logit, 0.0f) - logit * label + portable::Log1p(portable::Exp(-std::abs(logit)));
      if (logits != nullptr) logits[example] = logit;
      if (gradients == nullptr) continue;
      const float error = (1 / (1 + Exp(-logit)) - label) / batch.size;
      gradients[0][0] += error;
      for (int64_t i = 0; i < features_; ++i) {
        const float bent = Tanh(values[2][i] * x[i]);
        gradients[1][i] += error * bent;
        gradients[2][i] += error * values[1][i] * x[i] * (1 - bent * bent);
      }
    }
    return static_cast<float>(loss / batch.size);
  }

  const int64_t features_;
  v1::ModelSpec spec_;
};
REGISTER_MODEL("additive", [](auto&, const ExampleSpec& examples, auto&) -> absl::StatusOr<std::unique_ptr<Model>> {
  if (examples.features_dtype != v1::DT_FLOAT || examples.labels_dtype != v1::DT_INT32 || examples.classes > 2)
    return absl::InvalidArgumentError("the additive model tells two classes of float features apart");
  return std::make_unique<AdditiveModel>(examples.features_shape.num_elements());
});

}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::LockstepMain(argc, argv); }
