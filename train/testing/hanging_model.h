#ifndef LOCKSTEP_TRAIN_TESTING_HANGING_MODEL_H_
#define LOCKSTEP_TRAIN_TESTING_HANGING_MODEL_H_

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/worker/nn/testing/forwarding_model.h"

namespace lockstep::train {

// A model that computes like another one until it reaches a block in which it sends its process SIGTERM and never
// returns. The computing thread must block SIGTERM.
class HangingModel : public ForwardingModel {
 public:
  // Hangs in the block that follows the first `blocks` blocks.
  HangingModel(std::unique_ptr<Model> model, int blocks) : ForwardingModel(std::move(model)), blocks_left_(blocks) {}

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    if (blocks_left_-- > 0) return ForwardingModel::ComputeGradients(values, batch, key, sink);
    kill(getpid(), SIGTERM);
    while (true) pause();
  }

 private:
  std::atomic<int> blocks_left_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_TESTING_HANGING_MODEL_H_
