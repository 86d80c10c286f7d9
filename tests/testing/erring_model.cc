#include "lockstep/tests/testing/erring_model.h"

#include <cstring>

namespace lockstep {
namespace {

class ErringSink : public GradientSink {
 public:
  ErringSink(int variable, GradientSink* sink) : variable_(variable), sink_(sink) {}
  bool OnLoss(float loss) override { return sink_->OnLoss(loss); }
  void OnUpdate(int index, absl::Span<const float> value) override { sink_->OnUpdate(index, value); }
  float* GradientBuffer(int variable) override { return sink_->GradientBuffer(variable); }
  void OnGradient(int variable) override {
    if (variable == variable_) {
      float* const element = sink_->GradientBuffer(variable);
      uint32_t bits;
      std::memcpy(&bits, element, sizeof(bits));
      bits ^= 1;
      std::memcpy(element, &bits, sizeof(bits));
    }
    sink_->OnGradient(variable);
  }

 private:
  const int variable_;
  GradientSink* const sink_;
};

}  // namespace

absl::Status ErringModel::ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                           GradientSink* sink) {
  if (!errs_(key)) return model_->ComputeGradients(values, batch, key, sink);
  int last = spec().variables_size() - 1;
  while (!spec().variables(last).trainable()) --last;
  ErringSink erring(last, sink);
  return model_->ComputeGradients(values, batch, key, &erring);
}

}  // namespace lockstep
