#ifndef LOCKSTEP_TESTS_TESTING_ERRING_MODEL_H_
#define LOCKSTEP_TESTS_TESTING_ERRING_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/worker/nn/testing/forwarding_model.h"

namespace lockstep {

// A model that computes like another one, except that in slots for which `errs` returns true, it changes the last bit
// of one element of the last trainable variable's gradient. Simulates a processor, memory or library that differs from
// the others.
class ErringModel : public ForwardingModel {
 public:
  ErringModel(std::unique_ptr<Model> model, std::function<bool(const SlotKey&)> errs)
      : ForwardingModel(std::move(model)), errs_(std::move(errs)) {}

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override;

 private:
  const std::function<bool(const SlotKey&)> errs_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_ERRING_MODEL_H_
