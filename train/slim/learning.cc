#include "lockstep/train/slim/learning.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/train/hooks/base/hooked_session.h"
#include "lockstep/train/session/held_session.h"
#include "lockstep/train/session/init/default_policy.h"
#include "lockstep/train/session/open_session.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/slim/loop_session.h"
#include "re2/re2.h"

namespace lockstep::train::slim {
namespace {

bool HaveSameAverages(const SyncReplicas& a, const SyncReplicas& b) {
  const auto text = [](const SyncReplicas& sync) {
    return sync.variable_averages ? absl::make_optional(sync.variable_averages->SerializeAsString()) : absl::nullopt;
  };
  return text(a) == text(b) && a.variables_to_average == b.variables_to_average;
}

// Checks the arguments in tf_slim's order.
absl::Status CheckArguments(const TrainOp& train_op, const std::string& logdir, const TrainOptions& options) {
  if (!train_op.spec.has_model() && !train_op.make_workload) {
    return WrongOption("train_op", "is empty; slim::CreateTrainOp makes one");
  }
  if (logdir.empty()) {
    if (!options.summary_op.is_default()) return WrongOption("summary_op", "is given, but there is no logdir");
    if (options.saver != nullptr) return WrongOption("saver", "is given, but there is no logdir");
    if (options.trace_every_n_steps) return WrongOption("trace_every_n_steps", "is given, but there is no logdir");
  }
  if (options.saver != nullptr) {
    const absl::Status named = options.saver->CheckBesideRun(options.session.checkpoint_basename);
    if (!named.ok()) return WrongOption("saver", named.message());
  }
  if (!options.sync_optimizer.empty() && options.startup_delay_steps > 0) {
    return WrongOption("startup_delay_steps",
                       absl::StrCat(options.startup_delay_steps, ", must be 0 when sync_optimizer is given"));
  }
  if (options.number_of_steps && *options.number_of_steps <= 0) {
    return WrongOption("number_of_steps", absl::StrCat(*options.number_of_steps, ", must be absent or more than 0"));
  }
  for (const SyncReplicas& sync : options.sync_optimizer) {
    if (sync.replicas_to_aggregate <= 0) {
      return WrongOption("sync_optimizer", absl::StrCat("replicas_to_aggregate is ", sync.replicas_to_aggregate,
                                                        ", must be more than 0"));
    }
    if (sync.total_num_replicas && *sync.total_num_replicas <= 0) {
      return WrongOption("sync_optimizer",
                         absl::StrCat("total_num_replicas is ", *sync.total_num_replicas, ", must be more than 0"));
    }
    if (sync.total_num_replicas != options.sync_optimizer[0].total_num_replicas) {
      return WrongOption("sync_optimizer", "has different total_num_replicas; a run has one");
    }
    if (sync.replicas_to_aggregate != options.sync_optimizer[0].replicas_to_aggregate) {
      return WrongOption(
          "sync_optimizer",
          absl::StrCat("one averages ", options.sync_optimizer[0].replicas_to_aggregate, " gradients and another ",
                       sync.replicas_to_aggregate, "; a step of a run averages one number of them"));
    }
    if (!HaveSameAverages(sync, options.sync_optimizer[0])) {
      return WrongOption("sync_optimizer",
                         "has different variable_averages or variables_to_average; a run has one of each");
    }
  }
  if (options.trace_every_n_steps && *options.trace_every_n_steps <= 0) {
    return WrongOption("trace_every_n_steps", absl::StrCat(*options.trace_every_n_steps, ", must be more than 0"));
  }
  if (options.train_step_kwargs && !options.train_step_kwargs->state != !options.train_step_kwargs->set_state) {
    return WrongOption("train_step_kwargs", "has one of state and set_state; give both, or neither");
  }
  for (const Hook* hook : options.hooks) {
    if (hook == nullptr) return WrongOption("hooks", "one of them is null");
  }
  return absl::OkStatus();
}

// Makes the run end at `number_of_steps`. Because tf_slim checks the limit only after a step, one_more_step lets a run
// that has already ended successfully at that step or later take one more. If the chief is killed during that step and
// restarted, it ends at the same step.
absl::Status SetSteps(int64_t number_of_steps, const TrainOptions& options, const std::string& logdir,
                      config::v1::TrainingConfig* training) {
  training->clear_additional_steps();
  training->clear_unbounded();
  training->set_steps(number_of_steps);
  if (!options.one_more_step || !options.session.is_chief || logdir.empty()) return absl::OkStatus();
  FileSystem* const fs = options.session.fs;
  ASSIGN_OR_RETURN(const absl::optional<std::string> latest, LatestCheckpoint(fs, logdir));
  if (!latest || StepOfCheckpoint(*latest).value_or(0) < number_of_steps) return absl::OkStatus();
  ASSIGN_OR_RETURN(const absl::optional<v1::RunRecord> record, ReadRunRecord(fs, logdir, {}));
  if (!record || !(record->finished() || record->has_counted())) return absl::OkStatus();
  training->clear_steps();
  training->set_additional_steps(1);
  return absl::OkStatus();
}

// Returns the names of the functions that influence the weights, or "" if there are none.
std::string NameOfProgram(const TrainOptions& options) {
  std::vector<absl::string_view> functions;
  if (options.train_step_fn) functions.push_back("train_step_fn");
  if (!absl::c_all_of(options.hooks, [](const Hook* hook) { return hook->OnlyLooks(); })) functions.push_back("hooks");
  return functions.empty() ? "" : absl::StrCat("slim: ", absl::StrJoin(functions, ", "));
}

absl::Status SetSessionConfig(const TrainOp& train_op, const config::v1::ClusterConfig& config,
                              SessionOptions* session) {
  session->op = train_op;
  if (config.ByteSizeLong() == 0) return absl::OkStatus();
  config::v1::RunSpec spec = train_op.spec;
  spec.mutable_cluster()->MergeFrom(config);
  ASSIGN_OR_RETURN(session->op, train_op.WithSpec(std::move(spec)));
  // Applies to this process, whatever the chief's configuration is.
  if (config.compute_threads() > 0) session->compute_threads = static_cast<int>(config.compute_threads());
  SetChiefWait(config, session);
  return absl::OkStatus();
}

absl::Status SetPolicy(const std::vector<SyncReplicas>& sync_optimizer, TrainOp* op) {
  if (sync_optimizer.empty()) return absl::OkStatus();
  config::v1::TrainingConfig* const training = op->spec.mutable_training();
  if (training->has_async()) {
    return WrongOption("sync_optimizer",
                       "is given, but the train_op's configuration has training.async; give one of them");
  }
  const SyncReplicas& sync = sync_optimizer[0];
  training->set_replicas_to_aggregate(sync.replicas_to_aggregate);
  if (training->has_first_arrivals()) {
    if (sync.total_num_replicas) training->mutable_first_arrivals()->set_total_replicas(*sync.total_num_replicas);
    return op->WithSpec(op->spec).status();
  }
  training->mutable_deterministic();
  LOG_IF(INFO, sync.total_num_replicas.has_value())
      << "total_num_replicas has no effect: any number of workers may take part, those beyond replicas_to_aggregate as "
         "backups";
  return absl::OkStatus();
}

absl::Status SetAverages(const std::vector<SyncReplicas>& sync_optimizer, config::v1::OptimizerConfig* optimizer) {
  if (sync_optimizer.empty()) return absl::OkStatus();
  const SyncReplicas& sync = sync_optimizer[0];
  if (!sync.variable_averages && !sync.variables_to_average) return absl::OkStatus();
  if (sync.variable_averages) *optimizer->mutable_moving_average() = *sync.variable_averages;
  if (sync.variables_to_average) {
    if (!optimizer->has_moving_average()) {
      return WrongOption("sync_optimizer",
                         "has variables_to_average, but no averages are kept; give it variable_averages");
    }
    if (sync.variables_to_average->empty()) {
      return WrongOption("sync_optimizer", "has an empty variables_to_average; leave it out to average all");
    }
    auto* const variables = optimizer->mutable_moving_average()->mutable_variables();
    variables->Clear();
    for (const std::string& name : *sync.variables_to_average) {
      *variables->Add() = absl::StrCat("^", RE2::QuoteMeta(name), "$");
    }
  }
  const absl::Status valid = ValidateOptimizerRule(*optimizer);
  return valid.ok() ? valid : WrongOption("sync_optimizer", valid.message());
}

absl::StatusOr<SupervisorOptions> SupervisorOptionsOf(const TrainOp& train_op, const std::string& logdir,
                                                      const TrainOptions& options) {
  SupervisorOptions supervisor;
  static_cast<SupervisionOptions&>(supervisor) = options;
  supervisor.session = options.session;
  SessionOptions& session = supervisor.session;
  RETURN_IF_ERROR(SetSessionConfig(train_op, options.session_config, &session));
  session.logdir = logdir;
  session.write_events = true;
  session.init_fn = options.init_fn;
  if (session.program.empty()) session.program = NameOfProgram(options);
  if (options.startup_delay_steps > 0 && !session.is_chief) {
    session.startup_delay_steps =
        std::min(options.startup_delay_steps, options.number_of_steps.value_or(options.startup_delay_steps));
  }
  RETURN_IF_ERROR(SetPolicy(options.sync_optimizer, &session.op));
  RETURN_IF_ERROR(SetAverages(options.sync_optimizer, session.op.spec.mutable_optimizer()));
  if (options.number_of_steps) {
    RETURN_IF_ERROR(SetSteps(*options.number_of_steps, options, logdir, session.op.spec.mutable_training()));
  }
  RETURN_IF_ERROR(ApplyDefaultPolicy(&session));
  supervisor.init_op = options.init_op;
  supervisor.init_feed_dict = options.init_feed_dict;
  supervisor.local_init = options.local_init_op;
  supervisor.ready = options.ready_op;
  supervisor.summary = options.summary_op;
  supervisor.save_summaries_period = options.save_summaries_secs;
  supervisor.save_scalars_steps = options.save_scalars_steps;
  supervisor.summary_writer = options.summary_writer;
  supervisor.save_model_period = options.save_interval_secs;
  return supervisor;
}

TrainStepKwargs DefaultKwargs(const std::string& logdir, const TrainOptions& options) {
  TrainStepKwargs kwargs;
  kwargs.clock = options.session.clock;
  kwargs.fs = options.session.fs;
  if (options.number_of_steps) {
    kwargs.should_stop = [n = *options.number_of_steps](int64_t step) { return step >= n; };
  }
  if (options.log_every_n_steps > 0) {
    kwargs.should_log = [n = options.log_every_n_steps](int64_t step) { return step % n == 0; };
  }
  if (options.session.is_chief && options.trace_every_n_steps) {
    kwargs.should_trace = [n = *options.trace_every_n_steps](int64_t step) { return step % n == 0; };
    kwargs.logdir = logdir;
  }
  return kwargs;
}

// The state of a call to Train whose arguments have been checked. Life cycle: Opener, Follow, Begin, then Run for each
// session.
class Loop {
 public:
  Loop(const TrainOp& train_op, const std::string& logdir, const TrainOptions& options)
      : train_op_(train_op),
        logdir_(options.session.is_chief ? logdir : ""),
        options_(options),
        gates_(options.train_step_fn || options.train_step_kwargs),
        kwargs_(options.train_step_kwargs.value_or(DefaultKwargs(logdir, options))),
        step_function_(&kwargs_) {}

  // Collects the hooks and calls Begin on each of them.
  absl::Status Begin() {
    if (options_.session.is_chief && options_.trace_every_n_steps) {
      traced_steps_ = std::make_unique<TracedSteps>(*options_.trace_every_n_steps);
      looped_.hooks.push_back(traced_steps_.get());
    }
    if (options_.session.is_chief && gates_) looped_.hooks.push_back(&step_function_);
    looped_.hooks.insert(looped_.hooks.end(), options_.hooks.begin(), options_.hooks.end());
    looped_.gate_loop = gates_;
    RETURN_IF_ERROR(BeginHooks(looped_.hooks));
    ASSIGN_OR_RETURN(looped_.initial_states, StatesOf(looped_.hooks));
    return absl::OkStatus();
  }

  // Returns the function that opens the loop's sessions. This object must outlive the sessions.
  SessionOpener Opener() {
    return [this](SessionOptions session) -> absl::StatusOr<HeldSession> {
      session.open = options_.session.open;
      ASSIGN_OR_RETURN(HeldSession held, CallOpener(session));
      HeldSession looped;
      looped.listening = held.listening;
      auto loop_session = std::make_unique<LoopSession>(std::move(held), looped_);
      session_ = loop_session.get();
      looped.session = std::move(loop_session);
      return looped;
    };
  }

  // `supervisor` must outlive the last Run.
  void Follow(Supervisor* supervisor) {
    supervisor_ = supervisor;
    if (options_.summary_writer.is_none()) return;
    const bool has_writer = options_.session.is_chief && options_.summary_writer.is_given();
    if (logdir_.empty() && options_.session.summary_dir.empty() && !has_writer) return;
    kwargs_.summary_writer = [supervisor](const v1::Summary& summary, int64_t step) {
      return supervisor->SummaryComputed(summary, step);
    };
  }

  absl::Status Run(Session& session) {
    if (std::exchange(started_, true)) LOG(INFO) << "Retrying training!";
    LOG(INFO) << "Starting Session.";
    std::unique_ptr<Session> wrapped;
    if (options_.session_wrapper) {
      LOG(INFO) << "Wrapping session with wrapper function.";
      wrapped = options_.session_wrapper(&session);
      if (wrapped == nullptr) return absl::InvalidArgumentError("session_wrapper: has returned null");
    }
    Session& used = wrapped != nullptr ? *wrapped : session;
    const absl::Status status = Steps(used);
    if (!status.ok() && !absl::IsOutOfRange(status)) return status;
    LOG_IF(INFO, !status.ok()) << "Caught OutOfRangeError. Stopping Training. " << status.message();
    // Records a hook's stop and its reason, whatever the step function returned.
    if (session_->stop_requested() || options_.one_more_step) RETURN_IF_ERROR(session_->KeepStates());
    if (logdir_.empty()) return absl::OkStatus();
    LOG(INFO) << "Finished training! Saving model to disk.";
    return Save(used);
  }

  absl::optional<double> total_loss() const { return total_loss_; }

 private:
  absl::Status Steps(Session& session) {
    const TrainStepFn step = options_.train_step_fn ? options_.train_step_fn : TrainStepFn(TrainStep);
    // Starts the session first, because the step function may need its restored state.
    if (gates_) RETURN_IF_ERROR(session_->Start());
    absl::Time next_save = kwargs_.clock->Now();
    while (!supervisor_->ShouldStop()) {
      if (kwargs_.clock->Now() >= next_save) {
        RETURN_IF_ERROR(Save(session));
        next_save += Period();
      }
      ASSIGN_OR_RETURN(const TrainStepResult result, step(session, train_op_, kwargs_));
      total_loss_ = result.total_loss;
      // A chief that is restarted from here, before or after the end is recorded, repeats the call that requested the
      // stop. With one_more_step, it takes the next step instead.
      if (!result.should_stop || session_->stop_requested() || options_.one_more_step) {
        RETURN_IF_ERROR(session_->KeepStates());
      }
      if (!result.should_stop && !session_->stop_requested()) continue;
      LOG(INFO) << "Stopping Training.";
      return supervisor_->RequestStop();
    }
    return absl::OkStatus();
  }

  // Saves with the program's own saver, if it has one.
  absl::Status Save(Session& session) const {
    if (options_.saver == nullptr || logdir_.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const ReadResult read, session.Read({}));
    const std::string path = JoinPath(logdir_, options_.saver->options().basename);
    return options_.saver->Save(path, read.global_step, read.values).status();
  }
  absl::Duration Period() const {
    const absl::Duration period = SavePeriodOf(options_.save_interval_secs, train_op_);
    return period > absl::ZeroDuration() ? period : absl::InfiniteDuration();
  }

  const TrainOp& train_op_;
  // The chief's logdir.
  const std::string logdir_;
  const TrainOptions& options_;
  // True if the program's own code makes decisions between two steps.
  const bool gates_;
  TrainStepKwargs kwargs_;
  StepFunctionState step_function_;
  std::unique_ptr<TracedSteps> traced_steps_;
  // The options for each session.
  LoopSession::Options looped_;
  Supervisor* supervisor_ = nullptr;
  // The newest session.
  LoopSession* session_ = nullptr;
  bool started_ = false;
  absl::optional<double> total_loss_;
};

}  // namespace

absl::StatusOr<absl::optional<double>> Train(const TrainOp& train_op, const std::string& logdir, TrainOptions options) {
  RETURN_IF_ERROR(CheckArguments(train_op, logdir, options));
  ASSIGN_OR_RETURN(SupervisorOptions supervisor_options, SupervisorOptionsOf(train_op, logdir, options));
  Loop loop(train_op, logdir, options);
  supervisor_options.session.open = loop.Opener();
  ASSIGN_OR_RETURN(const auto supervisor, Supervisor::Create(std::move(supervisor_options)));
  loop.Follow(supervisor.get());
  RETURN_IF_ERROR(loop.Begin());
  Supervisor::PrepareOptions prepare;
  prepare.start_standard_services = !logdir.empty() || !options.session.summary_dir.empty();
  prepare.recover = true;
  RETURN_IF_ERROR(supervisor->ManagedSession([&](Session& session) { return loop.Run(session); }, prepare));
  return loop.total_loss();
}

}  // namespace lockstep::train::slim
