#include "lockstep/train/graph_actions/train.h"

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/logging_tensor_hook.h"
#include "lockstep/train/hooks/loss_summary_hook.h"
#include "lockstep/train/hooks/monitors/monitor_hook_adapter.h"
#include "lockstep/train/hooks/step_counter_hook.h"
#include "lockstep/train/monitored/monitored_session.h"
#include "lockstep/train/session/init/default_policy.h"
#include "lockstep/train/session/local_workers.h"
#include "lockstep/train/session/open_session.h"
#include "lockstep/train/session/run_bound.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep::train::graph_actions {
namespace {

constexpr int64_t kPrintedSteps = 100;
// TensorFlow's supervisor uses this period for its step counter, regardless of its summary period.
constexpr absl::Duration kStepCounterPeriod = absl::Seconds(120);

// Returns true if the op has a loss. A program's own model always has one.
bool HasLoss(const TrainOp& op) {
  return op.make_workload || op.spec.model().layer_size() == 0 || op.spec.model().loss_size() > 0;
}

// Checks the options in the same order as TensorFlow.
absl::Status CheckOptions(const TrainOptions& options) {
  const SessionOptions& session = options.session;
  if (options.steps && options.max_steps) {
    return absl::InvalidArgumentError("steps: is given beside max_steps; give one of the two");
  }
  if (session.is_chief && session.logdir.empty()) {
    return absl::InvalidArgumentError("output_dir: session.logdir is empty; it is where checkpoints and events go");
  }
  if (!session.op.make_workload && session.op.spec.ByteSizeLong() == 0) {
    return absl::InvalidArgumentError("train_op: session.op is empty; make one with CreateTrainOp");
  }
  if (!HasLoss(session.op)) return absl::InvalidArgumentError("loss_op: the model of session.op has no loss");
  if (options.steps && *options.steps <= 0) {
    return WrongOption(
        "steps", absl::StrCat(*options.steps, ", must be above 0; for a run without a bound set training.unbounded"));
  }
  if (options.max_steps && *options.max_steps <= 0) {
    return WrongOption("max_steps", absl::StrCat(*options.max_steps, ", must be above 0"));
  }
  RETURN_IF_ERROR(CheckNotNegative("log_every_steps", options.log_every_steps));
  RETURN_IF_ERROR(CheckNotNegative("keep_checkpoint_max", options.keep_checkpoint_max.value_or(0)));
  RETURN_IF_ERROR(CheckNotNegative("save_summaries_steps", options.save_summaries_steps));
  RETURN_IF_ERROR(CheckNotNegative("save_model_period", SavePeriodOf(options.save_model_period, session.op)));
  for (const Monitor* monitor : options.monitors) {
    if (monitor == nullptr) return absl::InvalidArgumentError("monitors: one of them is null");
  }
  for (const Hook* hook : options.hooks) {
    if (hook == nullptr) return absl::InvalidArgumentError("hooks: one of them is null");
  }
  return absl::OkStatus();
}

class FedBatches : public BatchSource {
 public:
  FedBatches(const ExampleSpec& spec, FeedFunction feed) : spec_(spec), feed_(std::move(feed)) {}

  const ExampleSpec& spec() const override { return spec_; }
  absl::StatusOr<Batch> Get(int64_t step, int64_t slot) override { return feed_(step, slot); }

 private:
  const ExampleSpec spec_;
  const FeedFunction feed_;
};

// Returns a factory that replaces the batches of the workload that `make` creates with those of `feed`. The replaced
// batches then only specify the examples.
WorkloadFactory Fed(WorkloadFactory make, FeedFunction feed) {
  return [make = std::move(make), feed = std::move(feed)](const config::v1::RunSpec& spec) -> absl::StatusOr<Workload> {
    ASSIGN_OR_RETURN(Workload workload, make(spec));
    workload.batches = std::make_unique<FedBatches>(workload.batches->spec(), feed);
    workload.data = absl::nullopt;
    return workload;
  };
}

// Returns the op that the session trains.
absl::StatusOr<TrainOp> ResolveOp(const TrainOptions& options) {
  config::v1::RunSpec spec = options.session.op.spec;
  config::v1::TrainingConfig* const training = spec.mutable_training();
  if (options.steps || options.max_steps) {
    training->clear_unbounded();
    training->set_steps(options.max_steps.value_or(0));
    training->set_additional_steps(options.steps.value_or(0));
  }
  training->set_skip_non_finite(!options.fail_on_nan_loss);
  training->clear_end_on_non_finite();
  spec.mutable_checkpoint()->set_every_seconds(
      absl::ToDoubleSeconds(SavePeriodOf(options.save_model_period, options.session.op)));
  spec.mutable_checkpoint()->set_keep(options.keep_checkpoint_max.value_or(0));
  spec.mutable_summary()->set_every_steps(0);
  if (options.save_summaries_steps == 0) spec.mutable_summary()->clear_gradients_every_steps();
  ASSIGN_OR_RETURN(TrainOp op, options.session.op.WithSpec(std::move(spec)));
  if (!options.feed_fn) return op;
  SessionOptions untransformed = options.session;
  untransformed.op.transform_model = nullptr;
  op.make_workload = Fed(WorkloadFactoryOf(untransformed), options.feed_fn);
  return op;
}

// A worker's monitors. Their End is not called, because the end of this worker's part is not the end of the run.
class WorkerMonitors : public Hook {
 public:
  explicit WorkerMonitors(std::unique_ptr<Hook> monitors) : monitors_(std::move(monitors)) {}

  std::string name() const override { return monitors_->name(); }
  absl::Status Begin() override { return monitors_->Begin(); }
  absl::Status BeforeRun(RunContext& context) override { return monitors_->BeforeRun(context); }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    return monitors_->AfterRun(context, values);
  }

 private:
  const std::unique_ptr<Hook> monitors_;
};

absl::Status AddMonitors(const TrainOptions& options, absl::optional<int64_t> bound,
                         std::vector<std::unique_ptr<Hook>>* hooks) {
  MonitorHookAdapterOptions adapter;
  adapter.monitors = options.monitors;
  adapter.is_chief = options.session.is_chief;
  adapter.max_steps = bound;
  ASSIGN_OR_RETURN(std::unique_ptr<Hook> monitors, MonitorHookAdapter::Create(adapter));
  if (!options.session.is_chief) monitors = std::make_unique<WorkerMonitors>(std::move(monitors));
  hooks->push_back(std::move(monitors));
  return absl::OkStatus();
}

// Adds the default hooks of a chief without monitors.
absl::Status AddDefaults(const TrainOptions& options, std::vector<std::unique_ptr<Hook>>* hooks) {
  LoggingTensorOptions printer;
  printer.tensors = {"loss", "global_step"};
  printer.every_n_iter = kPrintedSteps;
  printer.log = options.log;
  printer.clock = options.session.clock;
  ASSIGN_OR_RETURN(auto print_loss, LoggingTensorHook::Create(printer));
  hooks->push_back(std::move(print_loss));
  if (options.save_summaries_steps == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(auto save_loss,
                   LossSummaryHook::Create({Period::Steps(options.save_summaries_steps), options.session.clock}));
  hooks->push_back(std::move(save_loss));
  return absl::OkStatus();
}

absl::StatusOr<MonitoredSessionOptions> SessionOf(const TrainOptions& options, absl::optional<int64_t> bound) {
  MonitoredSessionOptions resolved;
  resolved.session = options.session;
  resolved.scaffold.init_op = options.init_op;
  resolved.scaffold.init_feed_dict = options.init_feed_dict;
  if (options.session.is_chief) {
    ASSIGN_OR_RETURN(auto counter, StepCounterHook::Create({Period::Time(kStepCounterPeriod), options.session.clock}));
    resolved.own_hooks.push_back(std::move(counter));
  }
  if (!options.monitors.empty()) {
    RETURN_IF_ERROR(AddMonitors(options, bound, &resolved.own_hooks));
  } else if (options.session.is_chief) {
    RETURN_IF_ERROR(AddDefaults(options, &resolved.own_hooks));
  }
  resolved.hooks = options.hooks;
  resolved.max_wait = options.max_wait;
  resolved.recovery = options.recovery;
  return resolved;
}

// A hook that records the global step before the first step of this call. On the chief, no step begins before
// AfterCreateSession has returned.
class StartHook : public Hook {
 public:
  std::string name() const override { return "GraphActionsStart"; }
  absl::Status AfterCreateSession(Session& session) override {
    if (step_) return absl::OkStatus();
    ASSIGN_OR_RETURN(step_, session.GlobalStep());
    return absl::OkStatus();
  }
  bool GatesAt(int64_t) const override { return false; }

  int64_t step() const { return step_.value_or(0); }

 private:
  absl::optional<int64_t> step_;
};

// A logger for the loss. It writes a line every `log_every_steps` steps, and one for the last step.
class LossLines {
 public:
  LossLines(const TrainOptions& options, absl::optional<int64_t> bound, const StartHook* start)
      : is_chief_(options.session.is_chief),
        every_steps_(options.log_every_steps),
        clock_(options.session.clock),
        log_(options.log),
        bound_(bound),
        start_(*start) {}

  void BeforeRun() { began_ = clock_->Now(); }
  void AfterRun(const StepResult& result) {
    seen_ = result.global_step;
    // An earlier chief has run this step, which the hooks now see again.
    if (is_chief_ && result.global_step <= start_.step()) return;
    last_ = result;
    took_ = clock_->Now() - began_;
    if (!logged_) logged_ = start_.step();
    if (!std::isfinite(result.loss) || result.skipped) {
      LOG(WARNING) << "Model diverged with loss = " << result.loss << " at step " << result.global_step
                   << ", which counts and changes nothing else";
    }
    const bool is_last = bound_ && result.global_step >= *bound_;
    if (is_last || result.global_step - *logged_ >= every_steps_) Log();
  }
  // Returns true once the last step has been seen, even if the session does not yet know that no more steps will
  // follow.
  bool at_bound() const { return bound_ && seen_ >= *bound_; }
  // Writes the last line. A worker learns only at the end which step was the last.
  void AtEnd() {
    if (last_ && last_->global_step != logged_) Log();
  }

  absl::optional<double> loss() const { return last_ ? absl::make_optional(last_->loss) : absl::nullopt; }

 private:
  void Log() {
    logged_ = last_->global_step;
    const std::string line = absl::StrFormat("training step %d, loss = %.5f (%.3f sec/batch).", last_->global_step,
                                             last_->loss, absl::ToDoubleSeconds(took_));
    if (log_) {
      log_(line);
    } else {
      LOG(INFO) << line;
    }
  }

  const bool is_chief_;
  const int64_t every_steps_;
  Clock* const clock_;
  const std::function<void(const std::string&)> log_;
  const absl::optional<int64_t> bound_;
  const StartHook& start_;
  int64_t seen_ = 0;
  absl::Time began_;
  absl::Duration took_;
  absl::optional<StepResult> last_;
  absl::optional<int64_t> logged_;
};

}  // namespace

absl::StatusOr<absl::optional<double>> Train(TrainOptions options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(options.session.op, ResolveOp(options));
  // The step at which the run ends, for the monitors and the last loss line.
  absl::optional<int64_t> bound;
  if (options.session.is_chief) {
    RETURN_IF_ERROR(ApplyDefaultPolicy(&options.session));
    ASSIGN_OR_RETURN(bound, RunBound(options.session));
  }
  ASSIGN_OR_RETURN(MonitoredSessionOptions resolved, SessionOf(options, bound));
  StartHook start;
  resolved.first_hooks = {&start};
  LossLines lines(options, bound, &start);
  const TrainOp& op = options.session.op;
  const absl::Status status =
      WithSession(MonitoredSession::Create(std::move(resolved)), [&](MonitoredSession& session) -> absl::Status {
        while (!lines.at_bound() && !session.ShouldStop()) {
          lines.BeforeRun();
          ASSIGN_OR_RETURN(const StepResult result, session.Run(op));
          lines.AfterRun(result);
        }
        return absl::OkStatus();
      });
  RETURN_IF_ERROR(status);
  if (!options.session.is_chief) lines.AtEnd();
  return lines.loss();
}

}  // namespace lockstep::train::graph_actions
