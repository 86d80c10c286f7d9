#ifndef LOCKSTEP_TRAIN_LEARN_RUN_CONFIG_H_
#define LOCKSTEP_TRAIN_LEARN_RUN_CONFIG_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/cluster/cluster_role.h"
#include "lockstep/common/cluster/tf_config.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/monitored/monitored_training_session.h"
#include "lockstep/train/session/choice.h"

namespace lockstep::train {

// The arguments of a RunConfig.
struct RunConfigOptions {
  // This process's master string. If absent, it is derived from the process's address in the cluster. The chief serves
  // at its own address, and accepts no other value. A worker may give the chief's master string instead, and then
  // connects to it; in that case, the cluster need not list the worker.
  absl::optional<std::string> master;
  // Must be empty: the process that requests an evaluation also runs it.
  std::string evaluation_master;
  // The directory of the run. If empty, uses the environment's; if both are given, they must be equal.
  std::string model_dir;
  // The run's seed. If absent, uses the configuration's.
  absl::optional<uint64_t> tf_random_seed;
  // See MonitoredTrainingOptions.
  Choice<absl::Duration> save_checkpoints_secs;
  Choice<int64_t> save_checkpoints_steps;
  // The number of global steps between summaries, and between reports of the step rate (log_step_count_steps); 0 for
  // none.
  int64_t save_summary_steps = 100;
  // See MonitoredTrainingOptions::save_scalars_steps.
  int64_t save_scalars_steps = 0;
  int64_t log_step_count_steps = 100;
  // The number of newest checkpoints to keep; 0 keeps all.
  int64_t keep_checkpoint_max = 5;
  // Permanently keeps one of the older checkpoints per period of this length (SessionOptions::keep_checkpoint_every).
  double keep_checkpoint_every_n_hours = 10000;
  // Fields that are set replace those of the configuration's `cluster`: threads, leases, waits, shared memory.
  // compute_threads and chief_wait_seconds apply to this process; the chief determines the others.
  config::v1::ClusterConfig session_config;
  // The number of compute threads in each worker. If 0, session_config or the configuration determines it.
  int num_cores = 0;
  // Must be 1: there is no GPU memory to divide.
  double gpu_memory_fraction = 1;
  // device_filters must be empty and isolate_session_state must be false: a worker communicates only with the chief,
  // and two runs never share variables.
  std::vector<std::string> device_filters;
  bool isolate_session_state = false;
};

// The configuration of a process in a cluster: its role, the directory of its run, and how often it saves. Corresponds
// to TensorFlow's RunConfig. A value type that is validated on creation.
class RunConfig {
 public:
  // `environment` comes from TF_CONFIG or from Program, whose flags may have changed it. Errors: InvalidArgument naming
  // the wrong option; those of ResolveRole.
  static absl::StatusOr<RunConfig> Create(RunConfigOptions options, TfConfig environment);
  // Uses TF_CONFIG from this process's environment.
  static absl::StatusOr<RunConfig> Create(RunConfigOptions options = {});

  const ClusterSpec& cluster_spec() const { return environment_.cluster; }
  // "chief", "worker", …; absent if there is none.
  const absl::optional<std::string>& task_type() const { return environment_.task_type; }
  int task_id() const { return task_.index; }
  // Returns "local" if no environment is given.
  std::string environment() const { return environment_.environment.value_or("local"); }
  const ClusterRole& task() const { return task_; }
  bool is_chief() const { return task_.role == Role::kChief; }
  // Returns true if there are other processes: the cluster has several tasks, or this process works for a remote chief.
  bool is_distributed() const;
  // Returns this task's "grpc://host:port", or "" if the task is alone. Workers connect to the chief's address, which
  // task() contains.
  std::string master() const;
  // Always returns "".
  const std::string& evaluation_master() const { return options_.evaluation_master; }
  int num_ps_replicas() const;
  // Counts a chief or master as a worker, too.
  int num_worker_replicas() const;
  const std::string& model_dir() const { return environment_.model_dir; }

  const RunConfigOptions& options() const { return options_; }
  // Absent if the period is disabled.
  absl::optional<absl::Duration> save_checkpoints_secs() const;
  absl::optional<int64_t> save_checkpoints_steps() const;

  // Returns a copy with the options that `change` has set. Errors: those of Create.
  absl::StatusOr<RunConfig> Replace(const std::function<void(RunConfigOptions*)>& change) const;

  // Returns a string that is equal for two RunConfigs if they differ only in `ignored` (names as in RunConfigOptions).
  std::string Uid(const std::set<std::string>& ignored = DefaultIgnored()) const;
  // Returns the options that may change within a run: the seed, periods, retention of checkpoints, threads.
  static const std::set<std::string>& DefaultIgnored();

  // Copies the seed, session_config, periods, retention, and the run's directory and chief to `training`.
  void ApplyTo(MonitoredTrainingOptions* training) const;

 private:
  RunConfig(RunConfigOptions options, TfConfig environment, ClusterRole task)
      : options_(std::move(options)), environment_(std::move(environment)), task_(std::move(task)) {}

  RunConfigOptions options_;
  // The model_dir in it is the one in effect.
  TfConfig environment_;
  ClusterRole task_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_RUN_CONFIG_H_
