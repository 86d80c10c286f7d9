#ifndef LOCKSTEP_TRAIN_REPLAY_CONTRIBUTION_H_
#define LOCKSTEP_TRAIN_REPLAY_CONTRIBUTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/ps/versions/value_versions.h"
#include "lockstep/server/ps/versions/variable_snapshot.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/worker/session/block/block_computer.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// Computes contributions exactly like a worker, but in this process. Must be used by only one thread.
class ContributionComputer {
 public:
  // The first SetConfig calls `make_workload`, and so does each later one that changes the workers' settings.
  ContributionComputer(const ParameterLayout* layout, WorkloadFactory make_workload)
      : layout_(*layout), make_workload_(std::move(make_workload)) {}

  // Sets the batch size, multipliers and clips to be used for later contributions. Errors: those of `make_workload`;
  // FailedPrecondition if the model has other variables or update ops than the layout. The first call does not compare
  // them.
  absl::Status SetConfig(const config::v1::RunSpec& config);
  // May be called after SetConfig.
  const Workload& workload() const { return computer_->workload(); }

  // Computes the contribution for a one-slot token and adds it to `sums`. `estimates` are the estimates of all slots,
  // used with top-k compression. Errors: OutOfRange if the input has no such batch; those of the batches and the model.
  absl::Status Compute(const v1::Token& token, std::shared_ptr<const PublishedValues> values,
                       std::shared_ptr<const GradientEstimates> estimates, StepSums* sums);

 private:
  absl::Status CheckModel(const v1::ModelSpec& model) const;

  const ParameterLayout& layout_;
  const WorkloadFactory make_workload_;
  const std::atomic<bool> wanted_{true};
  std::atomic<int64_t> slots_computed_{0};
  absl::optional<config::v1::RunSpec> config_;  // the configuration of computer_
  std::unique_ptr<BlockComputer> computer_;
};

// A contribution to one slot: its report, and its gradient as the chief receives it.
class KeptContribution : public StepSums {
 public:
  // With top-k compression, `estimate` is the slot's estimate, and is copied; otherwise it is null. `layout` must
  // outlive this object.
  KeptContribution(const ParameterLayout* layout, const AlignedBuffer* estimate);

  void AddReports(absl::Span<const v1::SlotReport> reports) override { report_ = reports[0]; }
  bool AddPiece(const SlotBlock& block, const StepPiece& piece) override;
  bool complete() const override { return false; }
  absl::optional<NonFiniteValue> FindNonFinite(const SlotBlock& block) const override { return absl::nullopt; }
  size_t num_finished_segments() const override { return 0; }

  const v1::SlotReport& report() const { return report_; }
  // Returns the gradient of a trainable variable.
  absl::Span<const float> gradient(int variable) const;

 private:
  const ParameterLayout& layout_;
  v1::SlotReport report_;
  std::vector<float> gradients_;  // of all trained variables, flat
};

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_REPLAY_CONTRIBUTION_H_
