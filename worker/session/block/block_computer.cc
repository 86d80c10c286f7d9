#include "lockstep/worker/session/block/block_computer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/floating_point_mode.h"
#include "lockstep/common/base/process/trace_recorder.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/step/step_timer.h"

namespace lockstep {

void PrefetchFollowing(const v1::Token& token, int64_t slot, BatchSource* batches) {
  if (token.has_stream()) {
    for (int i = 1; i <= 3; ++i) batches->Prefetch(token.position() + i, token.stream());
    return;
  }
  if (token.extra()) return;
  int64_t step = token.step();
  for (int i = 0; i < 3; ++i) {
    if (++slot == token.first_slot() + token.slot_count()) {
      slot = token.first_slot();
      ++step;
    }
    batches->Prefetch(step, slot);
  }
}

BlockComputer::BlockComputer(Workload workload, ParameterLayout layout, uint64_t seed, const std::atomic<bool>* wanted,
                             std::atomic<int64_t>* slots)
    : workload_(std::move(workload)), layout_(std::move(layout)), seed_(seed), wanted_(*wanted), slots_(*slots) {}

absl::StatusOr<std::unique_ptr<BlockComputer>> BlockComputer::Create(const config::v1::RunSpec& config,
                                                                     Workload workload, const std::atomic<bool>* wanted,
                                                                     std::atomic<int64_t>* slots) {
  ASSIGN_OR_RETURN(ParameterLayout layout, ParameterLayout::Create(workload.model->spec()));
  std::unique_ptr<BlockComputer> computer(
      new BlockComputer(std::move(workload), std::move(layout), config.training().seed(), wanted, slots));
  computer->gradients_ =
      std::make_unique<BlockGradients>(&computer->layout_, wanted, CompressionOf(config.compression()),
                                       // Without skip_non_finite, a NaN ends the run.
                                       config.training().skip_non_finite() ? NaNs::kAlike : NaNs::kAsTheyAre);
  const v1::ModelSpec& model = computer->workload_.model->spec();
  computer->summaries_ =
      std::make_unique<GradientSummaries>(config.summary().gradients_every_steps(), model, computer->gradients_.get());
  RETURN_IF_ERROR(computer->SetTransforms(config.optimizer()));
  return computer;
}

absl::Status BlockComputer::SetTransforms(const config::v1::OptimizerConfig& optimizer) {
  ASSIGN_OR_RETURN(transforms_, GradientTransforms::Create(optimizer, workload_.model->spec(), summaries_.get()));
  return absl::OkStatus();
}

BlockComputer::Result BlockComputer::Compute(const StepChannel::Assignment& assignment, StepChannel* channel,
                                             const BlockAdditions& additions) {
  // A model may load a library that changes the floating-point mode in any slot.
  absl::Status mode = CheckFloatingPointMode();
  if (!mode.ok()) return {std::move(mode), /*own=*/true};
  const v1::Token& token = assignment.token;
  gradients_->BeginBlock(channel, token, assignment.estimates);
  for (int64_t slot = token.first_slot(); slot < token.first_slot() + token.slot_count(); ++slot) {
    Result result = ComputeSlot(assignment, slot, slot == token.first_slot() ? &additions : nullptr, channel->timer());
    if (result.own && absl::IsOutOfRange(result.status)) {
      LOG(INFO) << "the input ends before "
                << (token.has_stream() ? absl::StrCat("batch ", token.position(), " of stream ", token.stream())
                                       : absl::StrCat("slot ", slot, " of step ", token.step()))
                << ": " << result.status.message();
      return {channel->SendEndOfInput()};
    }
    if (!result.status.ok()) return result;
  }
  gradients_->EndBlock();
  return {gradients_->status()};
}

double BlockComputer::mean_loss() const {
  double sum = 0;
  for (const v1::SlotReport& report : gradients_->reports()) sum += report.loss();
  return gradients_->reports().empty() ? 0 : sum / static_cast<double>(gradients_->reports().size());
}

BlockComputer::Result BlockComputer::ComputeSlot(const StepChannel::Assignment& assignment, int64_t slot,
                                                 const BlockAdditions* additions, StepTimer* timer) {
  const v1::Token& token = assignment.token;
  SlotKey key;
  key.seed = seed_;
  key.step = token.has_stream() ? token.position() : token.step();
  key.slot = token.has_stream() ? token.stream() : slot;
  const auto batch = [&] {
    TraceSpan span("input");
    const StepTimer::Scope input(timer, StepTimer::Phase::kBatch);
    return BatchOf(workload_, key.step, key.slot);
  }();
  if (!batch.ok()) return {batch.status(), /*own=*/true};
  if (!wanted_.load()) return {absl::CancelledError("the block is not wanted")};
  if (workload_.batches != nullptr) PrefetchFollowing(token, slot, workload_.batches.get());
  gradients_->BeginSlot(slot);
  if (additions != nullptr && additions->stop) gradients_->RequestStop();
  summaries_->BeginSlot(key);
  absl::Status status;
  {
    TraceSpan span("compute");
    status = workload_.model->ComputeGradients(assignment.values, *batch, key, transforms_.get());
  }
  // The channel's error takes precedence, because it explains the model's status (a broken stream makes the model stop)
  // or leads to a retry of the block.
  if (!gradients_->status().ok()) return {gradients_->status()};
  if (!status.ok()) return {status, /*own=*/!absl::IsCancelled(status)};
  slots_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace lockstep
