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

// Computes contributions in this process, exactly as a worker does for a chief in its process. For one thread.
class ContributionComputer {
 public:
  // Settings that differ from those before cost a new workload. `make_workload` is called with them.
  ContributionComputer(const ParameterLayout* layout, WorkloadFactory make_workload)
      : layout_(*layout), make_workload_(std::move(make_workload)) {}

  // Contributions that follow are computed with the batch size, multipliers and clips of this configuration. Errors:
  // those of `make_workload`; FailedPrecondition if the model is not that of the layout.
  absl::Status SetConfig(const config::v1::RunSpec& config);
  // Available after SetConfig.
  const Workload& workload() const { return computer_->workload(); }

  // Adds the contribution to a token for one slot to `sums`. `estimates` are those of all slots, with top-k
  // compression. OutOfRange if the input has no such batch. Other errors: those of the batches and the model.
  absl::Status Compute(const v1::Token& token, std::shared_ptr<const PublishedValues> values,
                       std::shared_ptr<const GradientEstimates> estimates, StepSums* sums);

 private:
  const ParameterLayout& layout_;
  const WorkloadFactory make_workload_;
  const std::atomic<bool> wanted_{true};
  std::atomic<int64_t> slots_computed_{0};
  absl::optional<config::v1::RunSpec> config_;  // what computer_ was made for
  std::unique_ptr<BlockComputer> computer_;
};

// Keeps a contribution to one slot: its report, and its gradient as the chief takes it.
class KeptContribution : public StepSums {
 public:
  // `estimate` is the slot's, with top-k compression; otherwise null. Both must outlive this.
  KeptContribution(const ParameterLayout* layout, const AlignedBuffer* estimate);

  void AddReports(absl::Span<const v1::SlotReport> reports) override { report_ = reports[0]; }
  bool AddPiece(const SlotBlock& block, const StepPiece& piece) override;
  bool complete() const override { return false; }
  absl::optional<NonFinite> FindNonFinite(const SlotBlock& block) const override { return absl::nullopt; }
  size_t num_finished_segments() const override { return 0; }

  const v1::SlotReport& report() const { return report_; }
  // The gradient of a trainable variable.
  absl::Span<const float> gradient(int variable) const;

 private:
  const ParameterLayout& layout_;
  v1::SlotReport report_;
  std::vector<float> gradients_;  // flat, of the trained variables
};

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_REPLAY_CONTRIBUTION_H_
