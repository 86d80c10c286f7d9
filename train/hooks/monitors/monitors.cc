#include "lockstep/train/hooks/monitors/monitors.h"

#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/events/summary_builder.h"
#include "lockstep/train/hooks/base/fetched_value.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<StopAtStepMonitor>> StopAtStepMonitor::Create(const StopAtStepOptions& options) {
  ASSIGN_OR_RETURN(const auto target, StopAtStepTarget::Create("StopAtStepMonitor", options));
  return absl::WrapUnique(new StopAtStepMonitor(target));
}

absl::StatusOr<std::vector<std::string>> StopAtStepMonitor::StepBegin(int64_t step) {
  RETURN_IF_ERROR(Monitor::StepBegin(step).status());
  target_.CountFrom(step - 1);
  return std::vector<std::string>();
}

absl::StatusOr<bool> StopAtStepMonitor::StepEnd(int64_t step, const RunValues& values) {
  RETURN_IF_ERROR(Monitor::StepEnd(step, values).status());
  if (step >= *target_.last_step()) target_.set_reached();
  return target_.reached();
}

absl::StatusOr<std::unique_ptr<CheckpointSaverMonitor>> CheckpointSaverMonitor::Create(const Period& period,
                                                                                       Clock* clock) {
  ASSIGN_OR_RETURN(const auto timer, SecondOrStepTimer::Create(period, clock, "CheckpointSaverMonitor: "));
  return absl::WrapUnique(new CheckpointSaverMonitor(period, timer));
}

absl::Status CheckpointSaverMonitor::Begin(absl::optional<int64_t> max_steps) {
  timer_.Reset();
  last_step_.reset();
  return Monitor::Begin(max_steps);
}

absl::Status CheckpointSaverMonitor::PostStep(int64_t step, Session& session) {
  RETURN_IF_ERROR(Monitor::PostStep(step, session));
  last_step_ = step;
  if (!timer_.ShouldTrigger(step)) return absl::OkStatus();
  timer_.Update(step);
  return session.Save().status();
}

absl::Status CheckpointSaverMonitor::End(Session& session) {
  RETURN_IF_ERROR(Monitor::End(session));
  if (!last_step_ || timer_.last_triggered_step() == last_step_) return absl::OkStatus();
  return session.Save().status();
}

absl::Status StepCounterMonitor::EveryNPostStep(int64_t step, Session& session) {
  const absl::Time now = clock_->Now();
  const auto last = last_;
  last_ = {step, now};
  if (!last || now <= last->second || !session.is_chief()) return absl::OkStatus();
  const double seconds = absl::ToDoubleSeconds(now - last->second);
  return session.AddOwnSummary(ScalarSummary("global_step/sec", static_cast<double>(step - last->first) / seconds),
                               step);
}

absl::StatusOr<std::unique_ptr<SummarySaverMonitor>> SummarySaverMonitor::Create(SummaryProvider provider,
                                                                                 int64_t every_n_steps) {
  if (!provider) {
    return absl::InvalidArgumentError("SummarySaverMonitor has no provider: give the function that makes the summary");
  }
  return absl::WrapUnique(new SummarySaverMonitor(std::move(provider), every_n_steps));
}

absl::Status SummarySaverMonitor::EveryNPostStep(int64_t step, Session& session) {
  ASSIGN_OR_RETURN(const v1::Summary summary, provider_(session, step));
  return session.AddOwnSummary(summary, step);
}

absl::StatusOr<bool> NanLossMonitor::EveryNStepEnd(int64_t step, const RunValues& values) {
  if (!std::isnan(values.result.loss)) return false;
  const std::string what = absl::StrCat("the loss is NaN at global step ", step);
  if (fail_on_nan_loss_) return absl::InvalidArgumentError(what);
  LOG(WARNING) << what << ": the run is to end";
  return true;
}

absl::StatusOr<std::vector<std::string>> CaptureVariableMonitor::EveryNStepBegin(int64_t step) {
  if (IsOfEveryRun(variable_)) return std::vector<std::string>();
  return std::vector<std::string>{variable_};
}

absl::StatusOr<bool> CaptureVariableMonitor::EveryNStepEnd(int64_t step, const RunValues& values) {
  ASSIGN_OR_RETURN(values_[step], FetchedValue(values, variable_));
  return false;
}

absl::StatusOr<std::unique_ptr<ExportMonitor>> ExportMonitor::Create(const ExportOptions& options) {
  if (options.directory.empty()) {
    return absl::InvalidArgumentError("ExportMonitor's directory is empty: give the directory of the exports");
  }
  SaverOptions saver_options;
  saver_options.max_to_keep = options.exports_to_keep;
  saver_options.basename = "export";
  saver_options.fs = options.fs;
  saver_options.clock = options.clock;
  ASSIGN_OR_RETURN(std::unique_ptr<Saver> saver, Saver::Create(std::move(saver_options)));
  return absl::WrapUnique(new ExportMonitor(options, std::move(saver)));
}

absl::Status ExportMonitor::Begin(absl::optional<int64_t> max_steps) {
  RETURN_IF_ERROR(LookingEveryN::Begin(max_steps));
  RETURN_IF_ERROR(options_.fs->CreateDirectory(options_.directory));
  return saver_->RecoverHistory(options_.directory);
}

absl::Status ExportMonitor::EveryNPostStep(int64_t step, Session& session) {
  ASSIGN_OR_RETURN(const ReadResult read, session.Read(options_.variables));
  // At the end, the run may be at a later step, so the name uses the step that was read.
  return saver_->Save(absl::StrCat(options_.directory, "/"), read.global_step, read.values).status();
}

}  // namespace lockstep::train
