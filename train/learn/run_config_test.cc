#include "lockstep/train/learn/run_config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/learn/testing/fake_estimator.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

constexpr char kJobs[] = R"({"ps": ["host1:1", "host2:2"], "worker": ["host3:3", "host4:4", "host5:5"]})";

absl::StatusOr<RunConfig> Create(const std::string& tf_config, RunConfigOptions options = {}) {
  return RunConfig::Create(std::move(options), ParseTfConfig(tf_config).value());
}

std::string ErrorOf(const std::string& tf_config, RunConfigOptions options = {}) {
  const auto config = Create(tf_config, std::move(options));
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << tf_config;
  return std::string(config.status().message());
}

std::string WithTask(const std::string& task) {
  return absl::StrCat(R"({"cluster": )", kJobs, R"(, "task": )", task, "}");
}

TEST(RunConfigTest, WithoutAnEnvironmentItIsAloneWithTheDefaults) {
  const RunConfig config = *Create("");
  EXPECT_TRUE(config.is_chief());
  EXPECT_FALSE(config.is_distributed());
  EXPECT_EQ(config.master(), "");
  EXPECT_EQ(config.task_id(), 0);
  EXPECT_EQ(config.environment(), "local");
  EXPECT_EQ(config.save_checkpoints_secs(), absl::Seconds(600));
  EXPECT_EQ(config.save_checkpoints_steps(), absl::nullopt);
  EXPECT_EQ(config.num_worker_replicas(), 0);
}

// RC-02
TEST(RunConfigTest, ValuesComeFromTfConfig) {
  const RunConfig config = *Create(WithTask(R"({"type": "worker", "index": 1})"));
  EXPECT_EQ(config.master(), "grpc://host4:4");
  EXPECT_EQ(config.task_id(), 1);
  EXPECT_EQ(config.num_ps_replicas(), 2);
  EXPECT_EQ(config.num_worker_replicas(), 3);
  EXPECT_FALSE(config.is_chief());
  EXPECT_TRUE(config.is_distributed());
  EXPECT_EQ(config.task().chief_address, "host3:3");
}

// RC-03
TEST(RunConfigTest, ASingleTaskHasAnEmptyMaster) {
  const RunConfig config = *Create(R"({"cluster": {"worker": ["host1:1"]}, "task": {"type": "worker", "index": 0}})");
  EXPECT_EQ(config.master(), "");
  EXPECT_TRUE(config.is_chief());
  EXPECT_FALSE(config.is_distributed());
}

// RC-05, RC-06
TEST(RunConfigTest, AWrongTaskIsNamed) {
  EXPECT_THAT(ErrorOf(WithTask(R"({"type": "not_in_cluster_spec"})")),
              HasSubstr("\"not_in_cluster_spec\" is not in the cluster"));
  EXPECT_THAT(ErrorOf(WithTask(R"({"type": "worker", "index": 3})")), HasSubstr("has no task 3, it has 0, 1, 2"));
}

// RC-04
TEST(RunConfigTest, SeveralTasksNeedATaskType) {
  EXPECT_THAT(ErrorOf(WithTask(R"({"index": 0})")), HasSubstr("the task has no type, and the cluster several tasks"));
}

TEST(RunConfigTest, AChiefServesAtItsOwnAddress) {
  RunConfigOptions options;
  options.master = "grpc://chief:2222";
  EXPECT_EQ(ErrorOf("", options),
            "RunConfig's master is grpc://chief:2222, and this process is the chief at \"\", which serves the run "
            "itself; a worker has a task type or an index");
  EXPECT_THAT(ErrorOf(WithTask(R"({"type": "worker"})"), options), HasSubstr("the chief at \"grpc://host3:3\""));
  options.master = "grpc://host3:3";
  EXPECT_EQ(Create(WithTask(R"({"type": "worker"})"), options)->master(), "grpc://host3:3");
  options.master = "grpc://host";
  EXPECT_THAT(ErrorOf(WithTask(R"({"type": "worker"})"), options), HasSubstr("grpc://host"));
}

TEST(RunConfigTest, AWorkersMasterMayNameItsChief) {
  RunConfigOptions options;
  const auto master_of = [&](const std::string& tf_config) {
    MonitoredTrainingOptions training;
    Create(tf_config, options)->ApplyTo(&training);
    return training.session.master;
  };
  const std::string listed = WithTask(R"({"type": "worker", "index": 1})");
  EXPECT_EQ(master_of(listed), "grpc://host3:3");
  options.master = "grpc://host4:4";
  EXPECT_EQ(master_of(listed), "grpc://host3:3") << "its own address, as in the original";
  options.master = "grpc://elsewhere:1";
  EXPECT_EQ(master_of(listed), "grpc://elsewhere:1");
  EXPECT_EQ(master_of(R"({"task": {"type": "worker", "index": 2}})"), "grpc://elsewhere:1") << "without a cluster";
  // RC-12
  const std::string unlisted =
      R"({"cluster": {"ps": ["a:1"], "my_job": ["b:1"]}, "task": {"type": "worker", "index": 2}})";
  EXPECT_EQ(master_of(unlisted), "grpc://elsewhere:1");
  const RunConfig config = *Create(unlisted, options);
  EXPECT_FALSE(config.is_chief());
  EXPECT_EQ(config.task_id(), 2);
  EXPECT_EQ(config.num_ps_replicas(), 1);
  EXPECT_EQ(config.num_worker_replicas(), 0);
}

// RC-07, RC-09
TEST(RunConfigTest, TheEnvironmentSaysWhoIsChief) {
  const std::string cluster = R"({"cluster": {"ps": ["a:1"], "master": ["m:1"], "worker": ["w:1"]}, "task": {"type": )";
  EXPECT_TRUE(Create(cluster + R"("master"}, "environment": "cloud"})")->is_chief());
  EXPECT_FALSE(Create(cluster + R"("worker"}, "environment": "cloud"})")->is_chief());
  EXPECT_TRUE(Create(cluster + R"("worker"}, "environment": "random"})")->is_chief());
  EXPECT_FALSE(Create(cluster + R"("master"}, "environment": "random"})")->is_chief());
  EXPECT_TRUE(Create(cluster + R"("master"}})")->is_chief()) << "where the environment is not given";
}

// RC-10
TEST(RunConfigTest, AMasterCountsAsAWorker) {
  const RunConfig config =
      *Create(R"({"cluster": {"master": ["m:1"], "worker": ["a:1", "b:1", "c:1"]}, "task": {"type": "master"}})");
  EXPECT_EQ(config.num_worker_replicas(), 4);
}

// RC-11
TEST(RunConfigTest, TwoModelDirsMustAgree) {
  RunConfigOptions options;
  options.model_dir = "/one";
  EXPECT_EQ(ErrorOf(R"({"model_dir": "/two"})", options),
            "RunConfig's model_dir is /one, and the environment's /two; give one, or the same");
  EXPECT_EQ(Create(R"({"model_dir": "/one"})", options)->model_dir(), "/one");
  EXPECT_EQ(Create("", options)->model_dir(), "/one");
  EXPECT_EQ(Create(R"({"model_dir": "/two"})")->model_dir(), "/two");
}

// RC-13
TEST(RunConfigTest, ReplaceChangesACopy) {
  const RunConfig old = *Create(R"({"model_dir": "/old"})");
  const auto replaced = old.Replace([](RunConfigOptions* options) { options->model_dir = "/new"; });
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(replaced->model_dir(), "/new");
  EXPECT_EQ(old.model_dir(), "/old");
  EXPECT_FALSE(old.Replace([](RunConfigOptions* options) { options->num_cores = -1; }).ok());
}

// RC-15
TEST(RunConfigTest, APeriodOfStepsReplacesThatOfTime) {
  RunConfigOptions options;
  options.save_checkpoints_steps = 100;
  EXPECT_EQ(Create("", options)->save_checkpoints_secs(), absl::nullopt);
  EXPECT_EQ(Create("", options)->save_checkpoints_steps(), 100);
  options.save_checkpoints_secs = absl::Seconds(5);
  EXPECT_EQ(Create("", options)->save_checkpoints_secs(), absl::Seconds(5)) << "both were given";
  options = {};
  options.save_checkpoints_secs = kNone;
  EXPECT_EQ(Create("", options)->save_checkpoints_secs(), absl::nullopt);
  EXPECT_EQ(Create("", options)->save_checkpoints_steps(), absl::nullopt);
}

TEST(RunConfigTest, TheUidIgnoresWhatMayChangeAndTheOrderOfJobs) {
  const RunConfig config = *Create(WithTask(R"({"type": "worker"})"));
  const auto with = [&](const std::function<void(RunConfigOptions*)>& change) { return config.Replace(change)->Uid(); };
  EXPECT_EQ(with([](RunConfigOptions* options) { options->tf_random_seed = 7; }), config.Uid());
  EXPECT_EQ(with([](RunConfigOptions* options) { options->save_checkpoints_steps = 7; }), config.Uid());
  EXPECT_NE(with([](RunConfigOptions* options) { options->model_dir = "/other"; }), config.Uid());
  EXPECT_NE(Create(WithTask(R"({"type": "worker", "index": 1})"))->Uid(), config.Uid());
  EXPECT_NE(config.Replace([](RunConfigOptions* options) { options->tf_random_seed = 7; })->Uid({}), config.Uid({}));
  EXPECT_EQ(Create(R"({"task": {"type": "ps"}, "cluster": {"worker": ["a:1"], "ps": ["b:1"]}})")->Uid(),
            Create(R"({"cluster": {"ps": ["b:1"], "worker": ["a:1"]}, "task": {"type": "ps"}})")->Uid());
}

TEST(RunConfigTest, NamesTheOptionThatIsWrong) {
  RunConfigOptions options;
  options.evaluation_master = "grpc://e:1";
  EXPECT_THAT(ErrorOf("", options), HasSubstr("evaluation_master is grpc://e:1, must be empty"));
  options = {};
  options.save_checkpoints_secs = -absl::Seconds(1);
  EXPECT_EQ(ErrorOf("", options), "RunConfig's save_checkpoints_secs is -1s, must be 0 or more");
  options = {};
  options.keep_checkpoint_max = -1;
  EXPECT_EQ(ErrorOf("", options), "RunConfig's keep_checkpoint_max is -1, must be 0 or more");
  options = {};
  options.gpu_memory_fraction = 0.5;
  EXPECT_EQ(ErrorOf("", options), "RunConfig's gpu_memory_fraction is 0.5, must be 1: there is no GPU");
  options = {};
  options.keep_checkpoint_every_n_hours = -2;
  EXPECT_EQ(ErrorOf("", options), "RunConfig's keep_checkpoint_every_n_hours is -2, must be 0 or more");
  options = {};
  options.num_cores = 2;
  options.session_config.set_compute_threads(3);
  EXPECT_EQ(ErrorOf("", options),
            "RunConfig's num_cores is 2, and session_config's compute_threads 3; give one, or the same");
}

TEST(RunConfigTest, RefusesDeviceFiltersAndIsolation) {
  RunConfigOptions options;
  options.device_filters = {"/job:ps", "/job:worker/task:0"};
  EXPECT_EQ(ErrorOf("", options),
            "RunConfig's device_filters must be empty: a process sees no other task but its chief anyway");
  options = {};
  options.isolate_session_state = true;
  EXPECT_EQ(ErrorOf("", options),
            "RunConfig's isolate_session_state must be false: two runs never share variables, each has its own logdir");
}

TEST(RunConfigTest, IsAppliedToATrainingSession) {
  RunConfigOptions options;
  options.model_dir = "/model";
  options.tf_random_seed = 7;
  options.save_checkpoints_steps = 50;
  options.save_summary_steps = 20;
  options.save_scalars_steps = 40;
  options.log_step_count_steps = 0;
  options.keep_checkpoint_max = 2;
  options.keep_checkpoint_every_n_hours = 6;
  options.num_cores = 3;
  MonitoredTrainingOptions training;
  Create("", options)->ApplyTo(&training);
  EXPECT_EQ(training.session.logdir, "/model");
  EXPECT_EQ(training.session.compute_threads, 3);
  EXPECT_EQ(training.session.op.spec.training().seed(), 7u);
  EXPECT_EQ(training.session.op.spec.checkpoint().keep(), 2);
  EXPECT_EQ(training.save_checkpoint_steps.Or(absl::nullopt), 50);
  EXPECT_TRUE(training.save_checkpoint_secs.is_default());
  EXPECT_EQ(training.save_summaries_steps.Or(absl::nullopt), 20);
  EXPECT_EQ(training.save_scalars_steps, 40);
  EXPECT_EQ(training.log_step_count_steps, 0);
  EXPECT_EQ(CheckpointsOf(training)->every_steps(), 50);
  EXPECT_EQ(CheckpointsOf(training)->every_seconds(), 0);
  EXPECT_EQ(training.session.keep_checkpoint_every, absl::Hours(6));
}

TEST(RunConfigTest, TheSessionConfigReplacesClusterFields) {
  RunConfigOptions options;
  options.session_config.set_compute_threads(4);
  options.session_config.set_lease_seconds(2);
  options.session_config.set_shared_memory(false);
  MonitoredTrainingOptions training;
  training.session.op.spec.mutable_cluster()->set_lease_seconds(9);
  training.session.op.spec.mutable_cluster()->set_chief_wait_seconds(7);
  Create("", options)->ApplyTo(&training);
  const config::v1::ClusterConfig& cluster = training.session.op.spec.cluster();
  EXPECT_EQ(cluster.lease_seconds(), 2);
  EXPECT_FALSE(cluster.shared_memory());
  EXPECT_EQ(cluster.chief_wait_seconds(), 7) << "is not set there";
  EXPECT_EQ(training.session.compute_threads, 4) << "of this process, whatever its chief says";
}

TEST(RunConfigTest, AWorkerWaitsAsItsSessionConfigSays) {
  RunConfigOptions options;
  options.session_config.set_chief_wait_seconds(3);
  MonitoredTrainingOptions training;
  training.session.is_chief = false;
  Create("", options)->ApplyTo(&training);
  EXPECT_EQ(training.session.max_wait, absl::Seconds(3));
  training.session.max_wait = absl::Seconds(8);
  training.session.keep_checkpoint_every = absl::Hours(1);
  Create("", options)->ApplyTo(&training);
  EXPECT_EQ(training.session.max_wait, absl::Seconds(8)) << "the session's goes first";
  EXPECT_EQ(training.session.keep_checkpoint_every, absl::Hours(1));
}

}  // namespace
}  // namespace lockstep::train
