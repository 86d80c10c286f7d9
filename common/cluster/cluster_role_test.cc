#include "lockstep/common/cluster/cluster_role.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kKubeflow[] = R"({
  "cluster": {"chief": ["run-chief-0.ns.svc:2222"], "ps": ["run-ps-0.ns.svc:2222"],
              "worker": ["run-worker-0.ns.svc:2222", "run-worker-1.ns.svc:2222"]},
  "task": {"type": "TYPE", "index": INDEX}, "environment": "cloud"})";

std::string Kubeflow(const std::string& type, const std::string& index) {
  std::string json = kKubeflow;
  json.replace(json.find("TYPE"), 4, type);
  json.replace(json.find("INDEX"), 5, index);
  return json;
}

absl::StatusOr<ClusterRole> RoleOf(const std::string& json) {
  const auto config = ParseTfConfig(json);
  if (!config.ok()) return config.status();
  return ResolveRole(*config);
}

std::string ErrorOf(const std::string& json) {
  const auto role = RoleOf(json);
  EXPECT_EQ(role.status().code(), absl::StatusCode::kInvalidArgument) << json;
  return std::string(role.status().message());
}

TEST(TfConfigTest, IsReadWithAllItsFields) {
  const auto config = ParseTfConfig(
      R"({"cluster": {"ps": ["a:1", "b:1"], "worker": {"1": "c:1", "3": "d:1"}, "gone": []}, "more": [1],
          "task": {"type": "worker", "index": "3", "trial": 1}, "environment": "random", "model_dir": "/runs/1"})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster.ToString(), "ps: a:1, b:1; worker: {1: c:1, 3: d:1}");
  EXPECT_EQ(config->task_type, "worker");
  EXPECT_EQ(config->task_index, 3);
  EXPECT_EQ(config->environment, "random");
  EXPECT_EQ(config->model_dir, "/runs/1");
}

TEST(TfConfigTest, SaysNothingWhereItIsAbsentOrEmpty) {
  unsetenv(kTfConfigVariable);
  for (const auto& config : {TfConfigOfEnvironment(), ParseTfConfig("{}"), ParseTfConfig(R"({"task": null})")}) {
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(config->cluster.empty());
    EXPECT_EQ(config->task_type, absl::nullopt);
    EXPECT_EQ(config->task_index, absl::nullopt);
    EXPECT_EQ(config->model_dir, "");
  }
  setenv(kTfConfigVariable, R"({"model_dir": "d"})", 1);
  EXPECT_EQ(TfConfigOfEnvironment()->model_dir, "d");
  unsetenv(kTfConfigVariable);
}

TEST(TfConfigTest, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(ErrorOf("{\"task\": "), HasSubstr("TF_CONFIG is no JSON object"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("TF_CONFIG is no JSON object"));
  EXPECT_EQ(ErrorOf(R"({"cluster": "a:1"})"),
            "TF_CONFIG: cluster must be an object with a list of addresses for each job");
  EXPECT_EQ(ErrorOf(R"({"cluster": {"ps": 1}})"),
            "TF_CONFIG: cluster.ps must be a list of addresses, or an object with addresses by index");
  EXPECT_EQ(ErrorOf(R"({"cluster": {"ps": [1]}})"), "TF_CONFIG: cluster.ps must be a list of addresses, each a string");
  EXPECT_EQ(ErrorOf(R"({"cluster": {"ps": [""]}})"), "TF_CONFIG: task 0 of job \"ps\" has no address");
  EXPECT_EQ(ErrorOf(R"({"cluster": {"ps": {"x": "a:1"}}})"), "TF_CONFIG: cluster.ps's index must be 0 or more, not x");
  EXPECT_EQ(ErrorOf(R"({"task": {"index": 1.5}})"),
            "TF_CONFIG: task.index must be a whole number in [0, 1e+06), not 1.5");
  EXPECT_EQ(ErrorOf(R"({"task": {"type": 1}})"), "TF_CONFIG: task.type must be a string");
  EXPECT_EQ(ErrorOf(R"({"task": "worker"})"), "TF_CONFIG: task must be an object with type and index");
  EXPECT_EQ(ErrorOf(R"({"model_dir": 1})"), "TF_CONFIG: model_dir must be a string");
}

TEST(TfConfigTest, RefusesOwnMisspeltFieldsOnly) {
  const std::string rest = R"({"worker": ["a:1", "b:1"]}, "task": {"type": "chief"}})";
  EXPECT_EQ(ErrorOf(R"({"clusters": )" + rest), "TF_CONFIG has a \"clusters\"; did you mean \"cluster\"?");
  EXPECT_EQ(ErrorOf(R"({"Cluster": )" + rest), "TF_CONFIG has a \"Cluster\"; did you mean \"cluster\"?");
  EXPECT_EQ(ErrorOf(R"({"taks": {"type": "worker"}})"), "TF_CONFIG has a \"taks\"; did you mean \"task\"?");
  for (const char* name : {"master", "evaluation_master", "session_master", "job", "cloud", "trial", "service",
                           "rpc_layer", "hyperparameters"}) {
    EXPECT_TRUE(ParseTfConfig(absl::StrCat("{\"", name, "\": {}}")).ok()) << name;
  }
}

TEST(TfConfigTest, RefusesASparseClusterByName) {
  EXPECT_THAT(ErrorOf(R"({"sparseCluster": {"worker": {"1": "a:1"}}, "task": {"type": "worker", "index": 1}})"),
              HasSubstr("TF_CONFIG has a \"sparseCluster\""));
  EXPECT_TRUE(ParseTfConfig(R"({"sparseCluster": null})").ok());
}

TEST(TfConfigTest, RefusesAnIndexThatIsNamedTwice) {
  EXPECT_EQ(ErrorOf(R"({"cluster": {"worker": {"0": "a:1", "00": "b:1"}}})"),
            "TF_CONFIG: cluster.worker has index 0 twice");
}

TEST(ClusterRoleTest, FollowsKubeflowsTasks) {
  const auto chief = RoleOf(Kubeflow("chief", "0"));
  ASSERT_TRUE(chief.ok()) << chief.status();
  EXPECT_EQ(chief->role, Role::kChief);
  EXPECT_EQ(chief->address, "run-chief-0.ns.svc:2222");
  const auto worker = RoleOf(Kubeflow("worker", "1"));
  EXPECT_EQ(worker->role, Role::kWorker);
  EXPECT_EQ(worker->index, 1);
  EXPECT_EQ(worker->chief_address, "run-chief-0.ns.svc:2222");
  EXPECT_EQ(RoleOf(Kubeflow("worker", "0"))->role, Role::kWorker) << "the cluster names a chief";
  const auto ps = RoleOf(Kubeflow("ps", "0"));
  EXPECT_EQ(ps->role, Role::kParameterServer);
  EXPECT_EQ(ps->chief_address, "run-chief-0.ns.svc:2222");
  const auto evaluator = RoleOf(Kubeflow("evaluator", "0"));
  ASSERT_TRUE(evaluator.ok()) << "it need not be in the cluster: " << evaluator.status();
  EXPECT_EQ(evaluator->role, Role::kEvaluator);
  EXPECT_EQ(evaluator->chief_address, "run-chief-0.ns.svc:2222");
}

TEST(ClusterRoleTest, TheFirstWorkerIsChiefByDefault) {
  const std::string cluster = R"({"cluster": {"ps": ["p:1"], "worker": ["a:1", "b:1"]}, "task": )";
  EXPECT_EQ(RoleOf(cluster + R"({"type": "worker"}})")->role, Role::kChief) << "an absent index is 0";
  const auto second = RoleOf(cluster + R"({"type": "worker", "index": 1}})");
  EXPECT_EQ(second->role, Role::kWorker);
  EXPECT_EQ(second->chief_address, "a:1");
  EXPECT_EQ(
      RoleOf(R"({"cluster": {"worker": {"2": "a:1", "5": "b:1"}}, "task": {"type": "worker", "index": 2}})")->role,
      Role::kChief);
}

TEST(ClusterRoleTest, MasterIsChiefInCloudEnvironmentsOnly) {
  const std::string cluster = R"({"cluster": {"master": ["m:1"], "worker": ["a:1"]}, "task": {"type": )";
  EXPECT_EQ(RoleOf(cluster + R"("master"}})")->role, Role::kChief);
  EXPECT_EQ(RoleOf(cluster + R"("master"}, "environment": "cloud"})")->role, Role::kChief);
  EXPECT_EQ(RoleOf(cluster + R"("worker"}, "environment": "cloud"})")->chief_address, "m:1");
  EXPECT_EQ(RoleOf(cluster + R"("master"}, "environment": "random"})")->role, Role::kWorker);
  EXPECT_EQ(RoleOf(cluster + R"("worker"}, "environment": "random"})")->role, Role::kChief);
  EXPECT_EQ(RoleOf(R"({"cluster": {"master": ["m:1"], "ps": ["p:1"]}, "task": {"type": "ps"}, "environment": "local"})")
                ->chief_address,
            "m:1");
}

TEST(ClusterRoleTest, AloneItIsTheChiefWithoutAnAddress) {
  for (const char* json : {"", "{}", R"({"cluster": {"worker": ["a:1"]}})",
                           R"({"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}})"}) {
    const auto role = RoleOf(json);
    ASSERT_TRUE(role.ok()) << role.status();
    EXPECT_EQ(role->role, Role::kChief) << json;
    EXPECT_EQ(role->address, "");
    EXPECT_EQ(role->chief_address, "");
  }
  EXPECT_EQ(RoleOf(R"({"task": {"index": 2}})")->role, Role::kWorker);
  EXPECT_EQ(RoleOf(R"({"task": {"type": "evaluator"}})")->role, Role::kEvaluator);
  EXPECT_EQ(RoleOf(R"({"cluster": {"chief": ["a:1"]}, "task": {"type": "evaluator"}})")->chief_address, "a:1");
}

TEST(ClusterRoleTest, RefusesImpossibleRoles) {
  EXPECT_THAT(ErrorOf(Kubeflow("gpu", "0")),
              HasSubstr("job \"gpu\" is not in the cluster, which has chief, ps, worker"));
  EXPECT_THAT(ErrorOf(Kubeflow("worker", "2")), HasSubstr("job \"worker\" has no task 2, it has 0, 1"));
  EXPECT_THAT(ErrorOf(R"({"cluster": {"worker": ["a:1", "b:1"]}})"), HasSubstr("the task has no type"));
  EXPECT_THAT(ErrorOf(R"({"cluster": {"gpu": ["a:1", "b:1"]}, "task": {"type": "gpu"}})"),
              HasSubstr("must be chief, master, worker, ps or evaluator"));
  EXPECT_THAT(ErrorOf(R"({"cluster": {"ps": ["a:1", "b:1"]}, "task": {"type": "ps"}})"),
              HasSubstr("neither a chief nor a master nor a worker"));
  EXPECT_THAT(ErrorOf(R"({"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief"}})"),
              HasSubstr("2 tasks of the job \"chief\", must have one"));
  EXPECT_THAT(ErrorOf(R"({"cluster": {"chief": ["a:1"], "master": ["b:1"]}, "task": {"type": "chief"}})"),
              HasSubstr("both a chief and a master"));
}

TEST(ClusterRoleTest, AddressesNameATaskAndWhereItListens) {
  EXPECT_EQ(MasterOf("a:1"), "grpc://a:1");
  EXPECT_EQ(MasterOf("unix:/tmp/a"), "unix:/tmp/a");
  EXPECT_EQ(MasterOf(""), "");
  EXPECT_EQ(ListenAddressOf("run-chief-0.ns.svc:2222"), "0.0.0.0:2222");
  EXPECT_EQ(ListenAddressOf("[fd00::1]:2222"), "[::]:2222");
  EXPECT_EQ(ListenAddressOf("localhost:2222"), "localhost:2222");
  EXPECT_EQ(ListenAddressOf("127.0.0.1:2222"), "127.0.0.1:2222");
  EXPECT_EQ(ListenAddressOf("grpc://[::1]:2222"), "[::1]:2222");
  EXPECT_EQ(ListenAddressOf("unix:/tmp/a"), "unix:/tmp/a");
}

}  // namespace
}  // namespace lockstep
