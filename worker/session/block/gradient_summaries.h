#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_SUMMARIES_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_SUMMARIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lockstep/v1/event.pb.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// Reports what the first slot of every so many steps contributes, on its way to `sink`: for each trainable variable a
// histogram "<variable>/gradient" and the L2 norm "<variable>/gradient_norm". It comes after everything that changes a
// gradient, so the numbers are those that are applied. The report goes before the first gradient: the gradients of such
// a slot are passed on together, after the last one; all others are passed on as they come. For one thread.
class GradientSummaries : public GradientSink {
 public:
  // Steps that begin at multiples of `every_steps` are reported; 0: none. `model` and `sink` must outlive this.
  GradientSummaries(int64_t every_steps, const v1::ModelSpec& model, GradientSink* sink);

  // Before the slot's OnLoss.
  void BeginSlot(const SlotKey& key);

  bool OnLoss(float loss) override { return sink_->OnLoss(loss); }
  absl::Status OnSummary(const v1::Summary& summary) override { return sink_->OnSummary(summary); }
  absl::Status OnMetric(const std::string& name, float value) override { return sink_->OnMetric(name, value); }
  void RequestStop() override { sink_->RequestStop(); }
  void OnWeight(float weight) override { sink_->OnWeight(weight); }
  void OnUpdate(int index, absl::Span<const float> value) override { sink_->OnUpdate(index, value); }
  float* GradientBuffer(int variable) override { return sink_->GradientBuffer(variable); }
  void OnGradient(int variable) override;

 private:
  void Report();
  void Summarize(int variable, v1::Summary* summary);

  const int64_t every_steps_;
  const v1::ModelSpec& model_;
  GradientSink* const sink_;
  size_t trainable_ = 0;  // variables
  SlotKey key_;
  bool reports_ = false;
  // The gradients that wait for the last one, in the order in which they came.
  std::vector<int> held_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_SUMMARIES_H_
