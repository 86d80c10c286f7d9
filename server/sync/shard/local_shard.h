#ifndef LOCKSTEP_SERVER_SYNC_SHARD_LOCAL_SHARD_H_
#define LOCKSTEP_SERVER_SYNC_SHARD_LOCAL_SHARD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/server/ps/contribution_set.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/shard/step_shard.h"

namespace lockstep {

struct LocalShardOptions {
  // The norms of updates are gathered at every multiple of this many steps. 0 means never.
  int64_t norms_every_steps = 0;
  // If true, an update that is not finite is skipped when it is committed. Whether it is finite is known only then, so
  // no segment is final earlier.
  bool skips_non_finite = false;
  // See ContributionSet::Options.
  bool applies_sum = false;
};

// A shard that keeps all variables of a run in this process. For thread safety, see StepShard.
class LocalShard : public StepShard {
 public:
  // `store` must be initialized and must outlive this object. `slots` is replicas_to_aggregate.
  LocalShard(VariableStore* store, int64_t slots, const LocalShardOptions& options = LocalShardOptions());

  const ParameterLayout& layout() const override { return store_->layout(); }
  const Compression& compression() const override { return store_->compression(); }
  int64_t step() const override { return store_->step(); }
  int64_t max_partial_sums() const override { return store_->max_partial_sums(); }
  std::shared_ptr<StepSums> Begin(int64_t step) override;
  float learning_rate() const override { return store_->learning_rate(); }
  Committed Commit() override;
  void GiveUp() override;
  void Abort() override { sums_.reset(); }
  absl::Status CheckAssign(absl::Span<const AssignedValue> values) const override {
    return store_->CheckAssign(values);
  }
  absl::Status Assign(absl::Span<const AssignedValue> values) override { return store_->Assign(values); }
  absl::Status SetOptimizer(const config::v1::OptimizerConfig& optimizer) override {
    return store_->SetOptimizer(optimizer);
  }
  VariableSnapshot TakeSnapshot() const override { return store_->TakeSnapshot(); }
  std::shared_ptr<const PublishedValues> values() const override { return store_->published(); }
  const std::vector<int>& segment_order() const override { return segment_order_; }
  const v1::SharedMemoryHandle* values_memory() const override;
  const v1::SharedMemoryHandle* constants_memory() const override;
  std::shared_ptr<const GradientEstimates> estimates() const override { return store_->estimates(); }
  std::shared_ptr<const PublishedValues> next_values() const override;
  std::vector<int> finished_segments() const override;
  size_t num_finished_segments() const override;

 private:
  class Sums;
  struct FreeList;

  // Returns empty sums. They are reused after their last owner has released them.
  std::shared_ptr<Sums> NewSums();

  VariableStore* const store_;
  const int64_t slots_;
  const LocalShardOptions options_;
  const std::shared_ptr<FreeList> free_list_;
  std::vector<int> segment_order_;
  std::vector<int> updated_segments_;  // of the variables that update ops name
  // The sums of the update in progress; null if there is none.
  std::shared_ptr<Sums> sums_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_SHARD_LOCAL_SHARD_H_
