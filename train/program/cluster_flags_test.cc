#include "lockstep/train/program/cluster_flags.h"

#include <cstdlib>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<ProcessRole> Resolve(const std::vector<std::string>& words, const std::string& tf_config = "") {
  ClusterFlags flags;
  CommandLine command_line("program", "Trains.");
  flags.Declare(&command_line);
  std::ostringstream out, err;
  EXPECT_EQ(command_line.Parse(words, out, err), absl::nullopt) << err.str();
  return flags.Resolve(ParseTfConfig(tf_config).value());
}

std::string ErrorOf(const std::vector<std::string>& words, const std::string& tf_config = "") {
  const auto role = Resolve(words, tf_config);
  EXPECT_EQ(role.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(role.status().message());
}

constexpr char kTfConfig[] = R"({"cluster": {"chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1"]},
                                 "task": {"type": "worker", "index": 1}, "model_dir": "/runs/1"})";

TEST(ClusterFlagsTest, WithoutAnythingTheWholeRunIsHere) {
  const auto process = Resolve({});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->task.role, Role::kChief);
  EXPECT_EQ(process->listen, "");
  EXPECT_EQ(process->master, "");
}

TEST(ClusterFlagsTest, AMasterMakesAWorkerAndAListenerAChief) {
  const auto worker = Resolve({"--master=grpc://c:1", "--task_index=2"});
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->task.role, Role::kWorker);
  EXPECT_EQ(worker->task.index, 2);
  EXPECT_EQ(worker->master, "grpc://c:1");
  EXPECT_EQ(worker->environment.task_type, "worker");
  const auto chief = Resolve({"--listen=127.0.0.1:0", "--logdir=d"});
  EXPECT_EQ(chief->task.role, Role::kChief);
  EXPECT_EQ(chief->listen, "127.0.0.1:0");
  EXPECT_EQ(chief->logdir, "d");
  EXPECT_EQ(Resolve({"--job_name=master", "--listen=127.0.0.1:1"})->task.role, Role::kChief);
}

// In Kubernetes, a ConfigMap gives every pod the same environment variables.
TEST(ClusterFlagsTest, TheEnvironmentMayBeTheSameForAll) {
  setenv("LOCKSTEP_LISTEN", "0.0.0.0:2222", 1);
  setenv("LOCKSTEP_MASTER", "grpc://chief:2222", 1);
  const auto chief = Resolve({"--job_name=chief"});
  const auto worker = Resolve({"--job_name=worker"});
  const std::string error = ErrorOf({"--job_name=worker", "--listen=b:1"});
  unsetenv("LOCKSTEP_LISTEN");
  unsetenv("LOCKSTEP_MASTER");
  ASSERT_TRUE(chief.ok()) << chief.status();
  EXPECT_EQ(chief->listen, "0.0.0.0:2222");
  EXPECT_EQ(chief->master, "");
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->listen, "");
  EXPECT_EQ(worker->master, "grpc://chief:2222");
  EXPECT_THAT(error, HasSubstr("--listen is for the chief"));
}

TEST(ClusterFlagsTest, HostsMakeAClusterWhoseFirstWorkerIsTheChief) {
  const std::vector<std::string> hosts = {"--ps_hosts=p:1,q:1", "--worker_hosts=a:1,b:1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), hosts.begin(), hosts.end());
    return Resolve(more);
  };
  const auto chief = with({"--job_name=worker"});
  ASSERT_TRUE(chief.ok()) << chief.status();
  EXPECT_EQ(chief->task.role, Role::kChief);
  EXPECT_EQ(chief->listen, "0.0.0.0:1");
  const auto worker = with({"--job_name=worker", "--task_index=1"});
  EXPECT_EQ(worker->task.role, Role::kWorker);
  EXPECT_EQ(worker->master, "grpc://a:1");
  const auto ps = with({"--job_name=ps", "--task_index=1"});
  EXPECT_EQ(ps->task.role, Role::kParameterServer);
  EXPECT_EQ(ps->master, "grpc://a:1");
  EXPECT_EQ(with({"--job_name=evaluator", "--logdir=d"})->task.role, Role::kEvaluator);
}

TEST(ClusterFlagsTest, FlagsCountBeforeTheEnvironment) {
  const auto worker = Resolve({}, kTfConfig);
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->master, "grpc://c:1");
  EXPECT_EQ(worker->task.index, 1);
  EXPECT_EQ(worker->logdir, "/runs/1");
  EXPECT_EQ(Resolve({"--task_index=0"}, kTfConfig)->task.index, 0);
  EXPECT_EQ(Resolve({"--master=grpc://d:1"}, kTfConfig)->master, "grpc://d:1");
  EXPECT_EQ(Resolve({"--logdir=other"}, kTfConfig)->environment.model_dir, "other");
  const auto chief = Resolve({"--job_name=chief"}, kTfConfig);
  EXPECT_EQ(chief->task.role, Role::kChief) << "the index was the worker's";
  EXPECT_EQ(chief->listen, "0.0.0.0:1");
  EXPECT_EQ(Resolve({"--job_name=chief", "--listen=127.0.0.1:5"}, kTfConfig)->listen, "127.0.0.1:5");
  EXPECT_EQ(Resolve({"--worker_hosts=x:1,y:1"}, kTfConfig)->master, "grpc://x:1") << "in place of the cluster";
}

TEST(ClusterFlagsTest, NamesWhatContradictsAndWhatIsMissing) {
  EXPECT_THAT(ErrorOf({"--job_name=worker"}), HasSubstr("a worker needs --master"));
  EXPECT_THAT(ErrorOf({"--job_name=ps"}), HasSubstr("a parameter server needs --master"));
  EXPECT_THAT(ErrorOf({"--job_name=evaluator"}), HasSubstr("an evaluator needs --logdir"));
  EXPECT_THAT(ErrorOf({"--job_name=chief", "--master=a:1"}), HasSubstr("--master is where the chief is"));
  EXPECT_THAT(ErrorOf({"--job_name=worker", "--master=a:1", "--listen=b:1"}), HasSubstr("--listen is for the chief"));
  EXPECT_THAT(ErrorOf({"--job_name=gpu"}), HasSubstr("must be chief, master, worker, ps or evaluator"));
  EXPECT_THAT(ErrorOf({"--task_index=-1"}), HasSubstr("--task_index is -1, must be 0 or more"));
  EXPECT_THAT(ErrorOf({"--listen=here"}), HasSubstr("nobody can listen on \"here\""));
  EXPECT_THAT(ErrorOf({"--master=http://a:1"}), HasSubstr("the chief's address"));
  EXPECT_THAT(ErrorOf({"--worker_hosts=a:1,,b:1"}), HasSubstr("--ps_hosts and --worker_hosts: task 1 of job"));
  EXPECT_THAT(ErrorOf({"--ps_hosts=a:1,b:1", "--job_name=ps"}), HasSubstr("neither a chief nor a master nor a worker"));
}

}  // namespace
}  // namespace lockstep::train
