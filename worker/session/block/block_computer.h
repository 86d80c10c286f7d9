#ifndef LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_COMPUTER_H_
#define LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_COMPUTER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/session/block/block_gradients.h"
#include "lockstep/worker/session/block/block_observer.h"
#include "lockstep/worker/session/block/gradient_summaries.h"
#include "lockstep/worker/session/block/gradient_transforms.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// Hints at the three batches that most likely follow (token.step(), slot): the worker's block will be the same in the
// next step. If the token names a stream, they are the next ones of that. An extra token hints at nothing, because its
// batches would displace those. With three, one is ready while two are prepared at once (PrefetchedBatches).
void PrefetchFollowing(const v1::Token& token, int64_t slot, BatchSource* batches);

// Computes the blocks of one configuration with one workload: batches in, gradients out to a Step stream, as they
// become final. For one thread; what it is given may be set from any.
class BlockComputer {
 public:
  struct Result {
    absl::Status status;
    // The error is the input's or the model's, not the stream's; Cancelled never is.
    bool own = false;
  };

  // A block is given up soon after *wanted is false, unless it has begun to leave; *slots grows by one with each slot
  // computed. Both must outlive this. InvalidArgument when the configuration does not fit the model.
  static absl::StatusOr<std::unique_ptr<BlockComputer>> Create(const config::v1::RunSpec& config, Workload workload,
                                                               const std::atomic<bool>* wanted,
                                                               std::atomic<int64_t>* slots);

  // Computes the block and sends all of its contribution but the end, which is StepChannel::AwaitToken. Cancelled when
  // the block was given up.
  // An input without a batch for one of the slots is no error: the contribution says so (StepChannel::SendEndOfInput).
  Result Compute(const StepChannel::Assignment& assignment, StepChannel* channel, const BlockAdditions& additions = {});
  // Over the slots of the last block.
  double mean_loss() const;

  // Multipliers and clips of the blocks that follow. InvalidArgument when they do not fit the model.
  absl::Status SetTransforms(const config::v1::OptimizerConfig& optimizer);

  const Workload& workload() const { return workload_; }

 private:
  BlockComputer(Workload workload, ParameterLayout layout, uint64_t seed, const std::atomic<bool>* wanted,
                std::atomic<int64_t>* slots);
  // `timer` may be null.
  Result ComputeSlot(const StepChannel::Assignment& assignment, int64_t slot, const BlockAdditions* additions,
                     StepTimer* timer);

  const Workload workload_;
  const ParameterLayout layout_;
  const uint64_t seed_;
  const std::atomic<bool>& wanted_;
  std::atomic<int64_t>& slots_;
  std::unique_ptr<BlockGradients> gradients_;
  // Between the model and gradients_: the model, transforms_, summaries_, gradients_.
  std::unique_ptr<GradientSummaries> summaries_;
  std::unique_ptr<GradientTransforms> transforms_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_COMPUTER_H_
