#include "lockstep/train/hooks/monitors/validation_monitor.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/events/summary_builder.h"
#include "lockstep/train/hooks/base/hook_state.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<ValidationMonitor>> ValidationMonitor::Create(const ValidationOptions& options) {
  if (!options.evaluate) {
    return absl::InvalidArgumentError("ValidationMonitor has no evaluate: give the function that evaluates the values");
  }
  if (options.every_n_steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("ValidationMonitor's every_n_steps is ", options.every_n_steps, " where at least 1 is expected"));
  }
  if (options.early_stopping_rounds && *options.early_stopping_rounds < 1) {
    return absl::InvalidArgumentError(absl::StrCat("ValidationMonitor's early_stopping_rounds is ",
                                                   *options.early_stopping_rounds, " where at least 1 is expected"));
  }
  if (options.early_stopping_metric.empty()) {
    return absl::InvalidArgumentError("ValidationMonitor's early_stopping_metric is empty: give a metric's name");
  }
  if (options.name.empty()) return absl::InvalidArgumentError("ValidationMonitor's name is empty");
  std::unique_ptr<Saver> saver;
  if (!options.best_checkpoint_directory.empty()) {
    SaverOptions saver_options;
    saver_options.max_to_keep = 1;
    saver_options.basename = "best";
    saver_options.fs = options.fs;
    saver_options.clock = options.clock;
    ASSIGN_OR_RETURN(saver, Saver::Create(std::move(saver_options)));
  }
  return absl::WrapUnique(new ValidationMonitor(options, std::move(saver)));
}

absl::Status ValidationMonitor::Begin() {
  if (saver_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(options_.fs->CreateDirectory(options_.best_checkpoint_directory));
  return saver_->RecoverHistory(options_.best_checkpoint_directory);
}

absl::Status ValidationMonitor::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t step = values.result.global_step;
  if (!GatesAt(step)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ReadResult read, context.session().Read(options_.variables));
  ASSIGN_OR_RETURN(metrics_, options_.evaluate(read));
  LOG(INFO) << name() << ": global step " << step << ": " << absl::StrJoin(metrics_, ", ", absl::PairFormatter(" = "));
  const auto metric = metrics_.find(options_.early_stopping_metric);
  if (metric == metrics_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "evaluate returned no ", options_.early_stopping_metric, " but ",
        metrics_.empty() ? "nothing" : absl::StrJoin(metrics_, ", ", [](std::string* out, const auto& named) {
          absl::StrAppend(out, named.first);
        })));
  }
  RETURN_IF_ERROR(WriteSummary(context.session(), step));
  if (best_.Observe(step, metric->second)) {
    if (saver_ == nullptr) return absl::OkStatus();
    // The slash makes this a directory, in which the checkpoint is named "best".
    ASSIGN_OR_RETURN(best_checkpoint_,
                     saver_->Save(absl::StrCat(options_.best_checkpoint_directory, "/"), step, read.values));
    return absl::OkStatus();
  }
  if (options_.early_stopping_rounds && best_.StepsSince(step) >= *options_.early_stopping_rounds) {
    context.RequestStop(absl::StrCat(options_.early_stopping_metric, " was best at global step ", *best_.step(), ": ",
                                     *best_.value(), ", now ", metric->second));
  }
  return absl::OkStatus();
}

absl::Status ValidationMonitor::WriteSummary(Session& session, int64_t step) const {
  if (!session.is_chief()) return absl::OkStatus();
  v1::Summary summary;
  for (const auto& [name, value] : metrics_) {
    summary.MergeFrom(ScalarSummary(absl::StrCat("validation/", name), value));
  }
  return session.AddOwnSummary(summary, step);
}

std::string ValidationMonitor::State() const {
  HookState state;
  best_.Save(&state);
  state.SetText("best_checkpoint", best_checkpoint_);
  return state.Serialize();
}

absl::Status ValidationMonitor::SetState(absl::string_view text) {
  ASSIGN_OR_RETURN(const HookState state, HookState::Parse(text));
  RETURN_IF_ERROR(best_.Restore(state));
  return state.GetText("best_checkpoint", &best_checkpoint_);
}

}  // namespace lockstep::train
