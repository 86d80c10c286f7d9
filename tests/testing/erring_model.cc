#include "lockstep/tests/testing/erring_model.h"

#include <cstring>

namespace lockstep {
namespace {

class ErringSink : public ForwardingSink {
 public:
  ErringSink(int variable, GradientSink* sink) : ForwardingSink(sink), variable_(variable) {}
  void OnGradient(int variable) override {
    if (variable == variable_) {
      float* const element = sink()->GradientBuffer(variable);
      uint32_t bits;
      std::memcpy(&bits, element, sizeof(bits));
      bits ^= 1;
      std::memcpy(element, &bits, sizeof(bits));
    }
    sink()->OnGradient(variable);
  }

 private:
  const int variable_;
};

}  // namespace

absl::Status ErringModel::ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                           GradientSink* sink) {
  if (!errs_(key)) return ForwardingModel::ComputeGradients(values, batch, key, sink);
  int last = spec().variables_size() - 1;
  while (!spec().variables(last).trainable()) --last;
  ErringSink erring(last, sink);
  return ForwardingModel::ComputeGradients(values, batch, key, &erring);
}

}  // namespace lockstep
