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
  // This process's master string. Absent: that of its own address in the cluster. The chief serves at its own address,
  // and takes no other. A worker may give the chief's master string instead, and connects there; then the cluster need
  // not list it.
  absl::optional<std::string> master;
  // Must be empty: checkpoints are evaluated in the process that asks for it.
  std::string evaluation_master;
  // Where the run is. Empty: the environment's; both given must agree.
  std::string model_dir;
  // The run's seed; absent: that of its configuration.
  absl::optional<uint64_t> tf_random_seed;
  // MonitoredTrainingOptions'.
  Choice<absl::Duration> save_checkpoints_secs;
  Choice<int64_t> save_checkpoints_steps;
  // 0: no summaries, no rate of steps.
  int64_t save_summary_steps = 100;
  // MonitoredTrainingOptions::save_scalars_steps.
  int64_t save_scalars_steps = 0;
  int64_t log_step_count_steps = 100;
  // The newest so many stay; 0: all.
  int64_t keep_checkpoint_max = 5;
  // Of the others, one in each such period stays permanently (SessionOptions::keep_checkpoint_every).
  double keep_checkpoint_every_n_hours = 10000;
  // Fields that are set take the place of those of the configuration's `cluster`: threads, leases, waits, shared
  // memory. Each process has its own compute_threads and chief_wait_seconds; the others are the chief's.
  config::v1::ClusterConfig session_config;
  // Threads that compute in each worker; 0: as session_config or the configuration says.
  int num_cores = 0;
  // Must be 1: there is no GPU whose memory it could be a part of.
  double gpu_memory_fraction = 1;
  // Must be empty and false: a worker sees no task but the chief, and two runs never share variables.
  std::vector<std::string> device_filters;
  bool isolate_session_state = false;
};

// What a process is in its cluster, where its run is and how often it saves: the original's RunConfig. A value that is
// checked when it is made.
class RunConfig {
 public:
  // `environment` is TF_CONFIG's, or Program's, which flags may have changed. Errors: InvalidArgument names the option
  // that is wrong; those of ResolveRole.
  static absl::StatusOr<RunConfig> Create(RunConfigOptions options, TfConfig environment);
  // With the TF_CONFIG of this process's environment.
  static absl::StatusOr<RunConfig> Create(RunConfigOptions options = {});

  const ClusterSpec& cluster_spec() const { return environment_.cluster; }
  // "chief", "worker", …; absent without one.
  const absl::optional<std::string>& task_type() const { return environment_.task_type; }
  int task_id() const { return task_.index; }
  // "local" unless it is given.
  std::string environment() const { return environment_.environment.value_or("local"); }
  const ClusterRole& task() const { return task_; }
  bool is_chief() const { return task_.role == Role::kChief; }
  // There are others: the cluster has several tasks, or this process works for a chief elsewhere.
  bool is_distributed() const;
  // "grpc://host:port" of this task; "" when it is alone. Workers connect to the chief's, which task() has.
  std::string master() const;
  // "" always.
  const std::string& evaluation_master() const { return options_.evaluation_master; }
  int num_ps_replicas() const;
  // A chief or master counts as one.
  int num_worker_replicas() const;
  const std::string& model_dir() const { return environment_.model_dir; }

  const RunConfigOptions& options() const { return options_; }
  // Absent: not with that period.
  absl::optional<absl::Duration> save_checkpoints_secs() const;
  absl::optional<int64_t> save_checkpoints_steps() const;

  // A copy with options that `change` has set. Errors: those of Create.
  absl::StatusOr<RunConfig> Replace(const std::function<void(RunConfigOptions*)>& change) const;

  // Equal for two that differ in nothing but options named here (as in RunConfigOptions).
  std::string Uid(const std::set<std::string>& ignored = DefaultIgnored()) const;
  // Seed, periods, what is kept, threads: what may change while the run is the same.
  static const std::set<std::string>& DefaultIgnored();

  // Sets in `training` what this says: seed, session_config, periods, what is kept, where the run and its chief are.
  void ApplyTo(MonitoredTrainingOptions* training) const;

 private:
  RunConfig(RunConfigOptions options, TfConfig environment, ClusterRole task)
      : options_(std::move(options)), environment_(std::move(environment)), task_(std::move(task)) {}

  RunConfigOptions options_;
  // Its model_dir is the one that counts.
  TfConfig environment_;
  ClusterRole task_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_RUN_CONFIG_H_
