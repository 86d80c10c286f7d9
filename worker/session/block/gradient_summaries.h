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

// A sink that passes gradients on to `sink` and reports those of slot 0 every `every_steps` steps: for each trainable
// variable, a histogram "<variable>/gradient" and the L2 norm "<variable>/gradient_norm". No later stage changes a
// gradient, so the reported gradients are those that are applied. A report must precede the first gradient, so this
// class holds the gradients of a reported slot until the last one is final. It passes all others on immediately. Use it
// from one thread.
class GradientSummaries : public ForwardingSink {
 public:
  // Reports steps that are multiples of `every_steps`, or none if it is 0. `model` and `sink` must outlive this object.
  GradientSummaries(int64_t every_steps, const v1::ModelSpec& model, GradientSink* sink);

  // Must be called before the slot's OnLoss.
  void BeginSlot(const SlotKey& key);

  void OnGradient(int variable) override;

 private:
  void Report();
  void Summarize(int variable, v1::Summary* summary);

  const int64_t every_steps_;
  const v1::ModelSpec& model_;
  size_t trainable_ = 0;  // variables
  SlotKey key_;
  bool reports_ = false;
  // The gradients that wait for the last one, in order of arrival.
  std::vector<int> held_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_GRADIENT_SUMMARIES_H_
