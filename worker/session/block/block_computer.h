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

// Prefetches the three batches that are most likely needed after (token.step(), slot), assuming that the worker gets
// the same block in the next step. If the token names a stream, prefetches the stream's next batches. Does nothing for
// an extra token, whose batches would displace the regular ones. Three batches suffice to have one ready while two are
// prepared together (PrefetchedBatches).
void PrefetchFollowing(const v1::Token& token, int64_t slot, BatchSource* batches);

// A computer of blocks for one configuration and workload, which sends each gradient to a Step stream as soon as the
// gradient is final. Use it from one thread. Any thread may access the atomics passed to Create.
class BlockComputer {
 public:
  struct Result {
    absl::Status status;
    // True if the error came from the input or the model, not from the stream. Always false for Cancelled.
    bool own = false;
  };

  // Creates a computer that abandons a block soon after *wanted becomes false, unless sending has begun, and that
  // increments *slots for each computed slot. Both must outlive the computer. Returns InvalidArgument if the
  // configuration does not fit the model.
  static absl::StatusOr<std::unique_ptr<BlockComputer>> Create(const config::v1::RunSpec& config, Workload workload,
                                                               const std::atomic<bool>* wanted,
                                                               std::atomic<int64_t>* slots);

  // Computes the block and sends its contribution, except for the final part, which StepChannel::AwaitToken sends.
  // Returns Cancelled if the block was abandoned.
  //
  // It is not an error if the input has no batch for one of the slots: the contribution then reports the end of the
  // input (StepChannel::SendEndOfInput).
  Result Compute(const StepChannel::Assignment& assignment, StepChannel* channel, const BlockAdditions& additions = {});
  // Returns the mean loss over the slots of the last block.
  double mean_loss() const;

  // Sets the multipliers and clips for the following blocks. Returns InvalidArgument if they do not fit the model.
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
  // Gradients pass from the model through transforms_ and summaries_ to gradients_.
  std::unique_ptr<GradientSummaries> summaries_;
  std::unique_ptr<GradientTransforms> transforms_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_BLOCK_BLOCK_COMPUTER_H_
