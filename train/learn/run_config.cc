#include "lockstep/train/learn/run_config.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/cluster_spec.h"
#include "lockstep/common/cluster/master_address.h"

namespace lockstep::train {
namespace {

constexpr absl::Duration kDefaultPeriod = absl::Seconds(600);

absl::Status Wrong(absl::string_view option, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("RunConfig's ", option, " ", why));
}

absl::Status CheckNotNegative(absl::string_view option, int64_t value) {
  return value >= 0 ? absl::OkStatus() : Wrong(option, absl::StrCat("is ", value, ", must be 0 or more"));
}

absl::Status CheckOptions(const RunConfigOptions& options) {
  if (!options.evaluation_master.empty()) {
    return Wrong("evaluation_master",
                 absl::StrCat("is ", options.evaluation_master,
                              ", must be empty: checkpoints are evaluated in the process that asks for it"));
  }
  const absl::Duration period = options.save_checkpoints_secs.Or(absl::nullopt).value_or(absl::ZeroDuration());
  if (period < absl::ZeroDuration()) {
    return Wrong("save_checkpoints_secs", absl::StrCat("is ", absl::FormatDuration(period), ", must be 0 or more"));
  }
  RETURN_IF_ERROR(
      CheckNotNegative("save_checkpoints_steps", options.save_checkpoints_steps.Or(absl::nullopt).value_or(0)));
  RETURN_IF_ERROR(CheckNotNegative("save_summary_steps", options.save_summary_steps));
  RETURN_IF_ERROR(CheckNotNegative("save_scalars_steps", options.save_scalars_steps));
  RETURN_IF_ERROR(CheckNotNegative("log_step_count_steps", options.log_step_count_steps));
  RETURN_IF_ERROR(CheckNotNegative("keep_checkpoint_max", options.keep_checkpoint_max));
  RETURN_IF_ERROR(CheckNotNegative("num_cores", options.num_cores));
  if (!(options.keep_checkpoint_every_n_hours >= 0)) {
    return Wrong("keep_checkpoint_every_n_hours",
                 absl::StrCat("is ", options.keep_checkpoint_every_n_hours, ", must be 0 or more"));
  }
  const int64_t threads = options.session_config.compute_threads();
  if (options.num_cores > 0 && threads > 0 && options.num_cores != threads) {
    return Wrong("num_cores", absl::StrCat("is ", options.num_cores, ", and session_config's compute_threads ", threads,
                                           "; give one, or the same"));
  }
  if (options.gpu_memory_fraction != 1) {
    return Wrong("gpu_memory_fraction",
                 absl::StrCat("is ", options.gpu_memory_fraction, ", must be 1: there is no GPU"));
  }
  if (!options.device_filters.empty()) {
    return Wrong("device_filters", "must be empty: a process sees no other task but its chief anyway");
  }
  if (options.isolate_session_state) {
    return Wrong("isolate_session_state", "must be false: two runs never share variables, each has its own logdir");
  }
  return absl::OkStatus();
}

// Returns the role of the process. Its chief is at `master` unless that is "" or the process's own address.
absl::StatusOr<ClusterRole> ResolveTaskAt(const std::string& master, const TfConfig& environment) {
  if (master.empty()) return ResolveRole(environment);
  RETURN_IF_ERROR(ParseMasterAddress(master).status());
  TfConfig own = environment;
  const bool is_worker = own.task_type == std::string("worker");
  if (is_worker && !ResolveTask(own.cluster, own.task_type, own.task_index.value_or(0)).ok()) {
    own.cluster = ClusterSpec();
  }
  ASSIGN_OR_RETURN(ClusterRole task, ResolveRole(own));
  if (master == MasterOf(task.address)) return task;
  if (task.role == Role::kChief) {
    return Wrong("master", absl::StrCat("is ", master, ", and this process is the chief at \"", MasterOf(task.address),
                                        "\", which serves the run itself; a worker has a task type or an index"));
  }
  task.chief_address = master;
  return task;
}

}  // namespace

absl::StatusOr<RunConfig> RunConfig::Create(RunConfigOptions options, TfConfig environment) {
  RETURN_IF_ERROR(CheckOptions(options));
  if (!options.model_dir.empty() && !environment.model_dir.empty() && options.model_dir != environment.model_dir) {
    return Wrong("model_dir", absl::StrCat("is ", options.model_dir, ", and the environment's ", environment.model_dir,
                                           "; give one, or the same"));
  }
  if (environment.model_dir.empty()) environment.model_dir = options.model_dir;
  ASSIGN_OR_RETURN(ClusterRole task, ResolveTaskAt(options.master.value_or(""), environment));
  return RunConfig(std::move(options), std::move(environment), std::move(task));
}

absl::StatusOr<RunConfig> RunConfig::Create(RunConfigOptions options) {
  ASSIGN_OR_RETURN(TfConfig environment, TfConfigOfEnvironment());
  return Create(std::move(options), std::move(environment));
}

bool RunConfig::is_distributed() const { return NumTasks(environment_.cluster) > 1 || !is_chief(); }

std::string RunConfig::master() const { return options_.master.value_or(MasterOf(task_.address)); }

int RunConfig::num_ps_replicas() const { return cluster_spec().NumTasks("ps").value_or(0); }

int RunConfig::num_worker_replicas() const {
  int count = 0;
  for (const char* job : {"worker", "master", "chief"}) count += cluster_spec().NumTasks(job).value_or(0);
  return count;
}

absl::optional<absl::Duration> RunConfig::save_checkpoints_secs() const {
  absl::optional<absl::Duration> default_period;
  if (options_.save_checkpoints_steps.is_default()) default_period = kDefaultPeriod;
  const absl::optional<absl::Duration> period = options_.save_checkpoints_secs.Or(default_period);
  return period == absl::ZeroDuration() ? absl::nullopt : period;
}

absl::optional<int64_t> RunConfig::save_checkpoints_steps() const {
  const absl::optional<int64_t> period = options_.save_checkpoints_steps.Or(absl::nullopt);
  return period == 0 ? absl::nullopt : period;
}

absl::StatusOr<RunConfig> RunConfig::Replace(const std::function<void(RunConfigOptions*)>& change) const {
  RunConfigOptions options = options_;
  TfConfig environment = environment_;
  change(&options);
  // A replaced model_dir also replaces the environment's.
  if (options.model_dir != options_.model_dir) environment.model_dir = options.model_dir;
  return Create(std::move(options), std::move(environment));
}

const std::set<std::string>& RunConfig::DefaultIgnored() {
  static const auto* const ignored = new std::set<std::string>{
      "tf_random_seed",        "save_summary_steps",  "save_scalars_steps",           "save_checkpoints_steps",
      "save_checkpoints_secs", "keep_checkpoint_max", "log_step_count_steps",         "num_cores",
      "gpu_memory_fraction",   "session_config",      "keep_checkpoint_every_n_hours"};
  return *ignored;
}

std::string RunConfig::Uid(const std::set<std::string>& ignored) const {
  const RunConfigOptions& o = options_;
  const auto seconds = save_checkpoints_secs();
  const auto steps = save_checkpoints_steps();
  std::map<std::string, std::string> fields = {
      {"cluster", cluster_spec().ToString()},
      {"task", absl::StrCat(task_type().value_or(""), ":", task_id())},
      {"environment", environment()},
      {"master", master()},
      {"model_dir", model_dir()},
      {"tf_random_seed", o.tf_random_seed ? absl::StrCat(*o.tf_random_seed) : ""},
      {"save_checkpoints_secs", seconds ? absl::FormatDuration(*seconds) : ""},
      {"save_checkpoints_steps", steps ? absl::StrCat(*steps) : ""},
      {"save_summary_steps", absl::StrCat(o.save_summary_steps)},
      {"save_scalars_steps", absl::StrCat(o.save_scalars_steps)},
      {"log_step_count_steps", absl::StrCat(o.log_step_count_steps)},
      {"keep_checkpoint_max", absl::StrCat(o.keep_checkpoint_max)},
      {"keep_checkpoint_every_n_hours", absl::StrCat(o.keep_checkpoint_every_n_hours)},
      {"session_config", o.session_config.ShortDebugString()},
      {"num_cores", absl::StrCat(o.num_cores)},
      {"gpu_memory_fraction", absl::StrCat(o.gpu_memory_fraction)},
  };
  for (const std::string& name : ignored) fields.erase(name);
  return absl::StrJoin(fields, "\n", absl::PairFormatter("="));
}

void RunConfig::ApplyTo(MonitoredTrainingOptions* training) const {
  SessionOptions& session = training->session;
  if (is_chief()) session.logdir = model_dir();
  if (!is_chief() && session.master.empty()) session.master = MasterOf(task_.chief_address);
  if (session.keep_checkpoint_every == absl::InfiniteDuration()) {
    session.keep_checkpoint_every = absl::Hours(options_.keep_checkpoint_every_n_hours);
  }
  session.op.spec.mutable_cluster()->MergeFrom(options_.session_config);
  // These settings apply to this process, regardless of the chief's configuration.
  const int64_t threads = std::max<int64_t>(options_.num_cores, options_.session_config.compute_threads());
  if (threads > 0) session.compute_threads = static_cast<int>(threads);
  SetChiefWait(options_.session_config, &session);
  if (options_.tf_random_seed) session.op.spec.mutable_training()->set_seed(*options_.tf_random_seed);
  session.op.spec.mutable_checkpoint()->set_keep(options_.keep_checkpoint_max);
  training->save_checkpoint_secs = options_.save_checkpoints_secs;
  training->save_checkpoint_steps = options_.save_checkpoints_steps;
  training->save_summaries_steps = options_.save_summary_steps;
  training->save_scalars_steps = options_.save_scalars_steps;
  training->log_step_count_steps = options_.log_step_count_steps;
}

}  // namespace lockstep::train
