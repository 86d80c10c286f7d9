#include "lockstep/train/monitored/monitored_training_session.h"

#include <string>
#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/loss_summary_hook.h"
#include "lockstep/train/hooks/step_counter_hook.h"
#include "lockstep/train/hooks/summary_saver_hook.h"
#include "lockstep/train/session/open_session.h"

namespace lockstep::train {
namespace {

absl::StatusOr<int64_t> StepsOf(absl::string_view option, const Choice<int64_t>& steps, int64_t default_value) {
  const int64_t value = steps.Or(default_value).value_or(0);
  RETURN_IF_ERROR(CheckNotNegative(option, value));
  return value;
}

absl::StatusOr<absl::Duration> TimeOf(absl::string_view option, const Choice<absl::Duration>& time,
                                      absl::Duration default_value) {
  const absl::Duration value = time.Or(default_value).value_or(absl::ZeroDuration());
  RETURN_IF_ERROR(CheckNotNegative(option, value));
  return value;
}

bool WritesEvents(const SessionOptions& session) {
  return session.is_chief && (!session.logdir.empty() || !session.summary_dir.empty() || session.summary_writer);
}

// Configures the scalars that the chief writes in addition to the hooks' summaries.
absl::Status SetScalars(MonitoredTrainingOptions* options) {
  RETURN_IF_ERROR(CheckNotNegative("save_scalars_steps", options->save_scalars_steps));
  options->session.op.spec.mutable_summary()->set_every_steps(options->save_scalars_steps);
  options->session.writes_loss = false;
  return absl::OkStatus();
}

absl::Status AddStepCounter(const MonitoredTrainingOptions& options, MonitoredSessionOptions* resolved) {
  ASSIGN_OR_RETURN(const int64_t steps, StepsOf("log_step_count_steps", options.log_step_count_steps, 0));
  if (steps == 0 || !WritesEvents(options.session)) return absl::OkStatus();
  StepCounterOptions counter;
  counter.period = Period::Steps(steps);
  counter.clock = options.session.clock;
  ASSIGN_OR_RETURN(auto hook, StepCounterHook::Create(counter));
  resolved->own_hooks.push_back(std::move(hook));
  return absl::OkStatus();
}

absl::Status AddSummarySaver(const MonitoredTrainingOptions& options, MonitoredSessionOptions* resolved) {
  const int64_t default_steps = options.save_summaries_secs.is_default() ? 100 : 0;
  ASSIGN_OR_RETURN(const int64_t steps, StepsOf("save_summaries_steps", options.save_summaries_steps, default_steps));
  ASSIGN_OR_RETURN(const absl::Duration time,
                   TimeOf("save_summaries_secs", options.save_summaries_secs, absl::ZeroDuration()));
  const bool timed = time > absl::ZeroDuration();
  if (steps > 0 && timed) {
    return absl::InvalidArgumentError("save_summaries_secs: is given beside save_summaries_steps; give one of the two");
  }
  if ((steps == 0 && !timed) || !WritesEvents(options.session) || options.scaffold.summary.is_none()) {
    return absl::OkStatus();
  }
  const Period period = timed ? Period::Time(time) : Period::Steps(steps);
  if (options.scaffold.summary.is_default()) {
    ASSIGN_OR_RETURN(auto hook, LossSummaryHook::Create({period, options.session.clock}));
    resolved->own_hooks.push_back(std::move(hook));
    return absl::OkStatus();
  }
  SummarySaverOptions saver;
  saver.period = period;
  saver.provider = *options.scaffold.summary.Or(absl::nullopt);
  saver.clock = options.session.clock;
  ASSIGN_OR_RETURN(auto hook, SummarySaverHook::Create(saver));
  resolved->own_hooks.push_back(std::move(hook));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<config::v1::CheckpointConfig> CheckpointsOf(const MonitoredTrainingOptions& options) {
  config::v1::CheckpointConfig checkpoint = options.session.op.spec.checkpoint();
  ASSIGN_OR_RETURN(const int64_t steps,
                   StepsOf("save_checkpoint_steps", options.save_checkpoint_steps, checkpoint.every_steps()));
  const absl::Duration default_time =
      options.save_checkpoint_steps.is_default() ? SavePeriodOf({}, options.session.op) : absl::ZeroDuration();
  ASSIGN_OR_RETURN(const absl::Duration time,
                   TimeOf("save_checkpoint_secs", options.save_checkpoint_secs, default_time));
  checkpoint.set_every_steps(steps);
  checkpoint.set_every_seconds(absl::ToDoubleSeconds(time));
  return checkpoint;
}

absl::StatusOr<MonitoredSessionOptions> ResolveMonitoredTraining(MonitoredTrainingOptions options) {
  MonitoredSessionOptions resolved;
  ASSIGN_OR_RETURN(*options.session.op.spec.mutable_checkpoint(), CheckpointsOf(options));
  RETURN_IF_ERROR(SetScalars(&options));
  RETURN_IF_ERROR(AddStepCounter(options, &resolved));
  const size_t hooks = resolved.own_hooks.size();
  RETURN_IF_ERROR(AddSummarySaver(options, &resolved));
  if (resolved.own_hooks.size() == hooks) options.session.op.spec.mutable_summary()->clear_gradients_every_steps();
  if (options.session.is_chief) resolved.first_hooks = options.chief_only_hooks;
  static_cast<MonitoredOptions&>(resolved) = std::move(options);
  return resolved;
}

absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredTrainingSession(MonitoredTrainingOptions options) {
  ASSIGN_OR_RETURN(MonitoredSessionOptions resolved, ResolveMonitoredTraining(std::move(options)));
  return MonitoredSession::Create(std::move(resolved));
}

absl::StatusOr<std::unique_ptr<MonitoredSession>> SingularMonitoredSession(SessionOptions session,
                                                                           std::vector<Hook*> hooks,
                                                                           Scaffold scaffold) {
  MonitoredSessionOptions options;
  options.session = std::move(session);
  options.hooks = std::move(hooks);
  options.scaffold = std::move(scaffold);
  options.recover = false;
  return MonitoredSession::Create(std::move(options));
}

}  // namespace lockstep::train
