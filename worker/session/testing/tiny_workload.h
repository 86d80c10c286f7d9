#ifndef LOCKSTEP_WORKER_SESSION_TESTING_TINY_WORKLOAD_H_
#define LOCKSTEP_WORKER_SESSION_TESTING_TINY_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// A source of empty batches for the steps before `end`.
class EmptyBatches : public BatchSource {
 public:
  explicit EmptyBatches(int64_t end) : end_(end) {}
  const ExampleSpec& spec() const override { return spec_; }
  absl::StatusOr<Batch> Get(int64_t step, int64_t) override {
    if (step >= end_) return absl::OutOfRangeError("the input has ended");
    return Batch();
  }

 private:
  const int64_t end_;
  ExampleSpec spec_;
};

// A model with one variable of one element. Calls `on_slot` before each slot's loss and `on_backward` after it.
class TinyModel : public Model {
 public:
  TinyModel(std::function<void()> on_slot, std::function<void()> on_backward)
      : on_slot_(std::move(on_slot)), on_backward_(std::move(on_backward)) {
    v1::VariableSpec* const variable = spec_.add_variables();
    variable->set_name("w");
    variable->set_dtype(v1::DT_FLOAT);
    variable->set_trainable(true);
  }
  const v1::ModelSpec& spec() const override { return spec_; }
  absl::Status ComputeGradients(VariableValues, const Batch&, const SlotKey&, GradientSink* sink) override {
    if (on_slot_) on_slot_();
    if (!sink->OnLoss(1)) return absl::CancelledError("the gradients are no longer wanted");
    if (on_backward_) on_backward_();
    *sink->GradientBuffer(0) = 1;
    sink->OnGradient(0);
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Predict(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }
  absl::StatusOr<float> EvaluateLoss(VariableValues, const Batch&) override { return absl::UnimplementedError("no"); }

 private:
  const std::function<void()> on_slot_, on_backward_;
  v1::ModelSpec spec_;
};

// Returns a workload of EmptyBatches and a TinyModel.
inline Workload TinyWorkload(std::function<void()> on_slot = nullptr, std::function<void()> on_backward = nullptr,
                             int64_t input_end = 1000) {
  Workload workload;
  workload.batches = std::make_unique<EmptyBatches>(input_end);
  workload.model = std::make_unique<TinyModel>(std::move(on_slot), std::move(on_backward));
  return workload;
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_TESTING_TINY_WORKLOAD_H_
