#include "lockstep/cli/launcher/resolved_task.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kKubeflow[] =
    R"({"cluster": {"chief": ["run-chief-0:2222"], "worker": ["run-worker-0:2222", "run-worker-1:2222"],
        "ps": ["run-ps-0:2222"]}, "task": {"type": "TYPE", "index": INDEX}, "model_dir": "/runs/1"})";
constexpr char kTwoWorkers[] =
    R"({"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": INDEX}})";

std::string TfConfig(std::string json, const std::string& type, int index) {
  if (json.find("TYPE") != std::string::npos) json.replace(json.find("TYPE"), 4, type);
  json.replace(json.find("INDEX"), 5, absl::StrCat(index));
  return json;
}

EnvironmentMap Slurm(int index, int tasks) {
  return {{"SLURM_PROCID", absl::StrCat(index)},
          {"SLURM_STEP_NUM_TASKS", absl::StrCat(tasks)},
          {"SLURM_STEP_NODELIST", "n[07-08],login"},
          {"SLURM_JOB_ID", "123042"},
          {"SLURMD_NODENAME", "n08"},
          {"SLURM_NTASKS", "99"}};
}

EnvironmentMap Kubernetes(int index) {
  return {{"JOB_COMPLETION_INDEX", absl::StrCat(index)}, {"HOSTNAME", absl::StrCat("fashion-mnist-", index)}};
}

EnvironmentMap Torchrun(int rank) {
  return {{"RANK", absl::StrCat(rank)},
          {"WORLD_SIZE", "4"},
          {"MASTER_ADDR", "h0"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
}

EnvironmentMap And(EnvironmentMap a, const EnvironmentMap& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// Returns text such as "role: chief (why); listen: 0.0.0.0:1 (why)".
std::string TextOf(const std::map<std::string, std::string>& flags, const EnvironmentMap& environment) {
  const auto task = ResolveTaskOf(flags, environment);
  if (!task.ok()) return std::string(task.status().message());
  std::string text;
  for (const TaskValue& value : task->values) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", value.name, ": ", value.value, " (", value.source, ")");
  }
  return text;
}

struct Row {
  const char* name;
  std::map<std::string, std::string> flags;
  EnvironmentMap environment;
  std::string expected;
};

class ResolvedTaskTest : public ::testing::TestWithParam<Row> {};

TEST_P(ResolvedTaskTest, PrintsEachValueAndItsSource) {
  EXPECT_EQ(TextOf(GetParam().flags, GetParam().environment), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Environments, ResolvedTaskTest,
    ::testing::Values(
        Row{"Nothing", {}, {}, "role: chief, computes (no launcher's variables); listen: 127.0.0.1:0 (no other task)"},
        Row{"MasterAlone",
            {{"master", "grpc://c:1"}},
            {},
            "role: worker (--master, and no launcher's variables); chief: grpc://c:1 (--master)"},
        Row{"TfConfigChief",
            {},
            {{"TF_CONFIG", TfConfig(kKubeflow, "chief", 0)}},
            "role: chief, task 0 of 4 (TF_CONFIG's task chief 0); chief: grpc://run-chief-0:2222 (TF_CONFIG's "
            "cluster); "
            "listen: 0.0.0.0:2222 (the chief's address); logdir: /runs/1 (TF_CONFIG's model_dir)"},
        Row{"TfConfigWorker",
            {},
            {{"TF_CONFIG", TfConfig(kKubeflow, "worker", 1)}},
            "role: worker, task 1 of 4 (TF_CONFIG's task worker 1); chief: grpc://run-chief-0:2222 (TF_CONFIG's "
            "cluster); name: worker-1 (the task's index)"},
        Row{"TfConfigPs",
            {},
            {{"TF_CONFIG", TfConfig(kKubeflow, "ps", 0)}},
            "role: ps, task 0 of 4 (TF_CONFIG's task ps 0); chief: grpc://run-chief-0:2222 (TF_CONFIG's cluster)"},
        Row{"TfConfigEvaluator",
            {},
            {{"TF_CONFIG", TfConfig(kKubeflow, "evaluator", 0)}},
            "role: evaluator, task 0 of 4 (TF_CONFIG's task evaluator 0); chief: grpc://run-chief-0:2222 (TF_CONFIG's "
            "cluster); logdir: /runs/1 (TF_CONFIG's model_dir)"},
        Row{"TfConfigChiefWithoutWorkersComputes",
            {},
            {{"TF_CONFIG", R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "chief"}})"}},
            "role: chief, task 0 of 2, computes (TF_CONFIG's task chief 0); chief: grpc://a:1 (TF_CONFIG's cluster); "
            "listen: 0.0.0.0:1 (the chief's address); name: worker-0 (the task's index)"},
        Row{"TfConfigFirstOfTwoWorkersLeadsAndComputes",
            {},
            {{"TF_CONFIG", TfConfig(kTwoWorkers, "", 0)}},
            "role: chief, task 0 of 2, computes (TF_CONFIG's task worker 0); chief: grpc://a:2222 (TF_CONFIG's "
            "cluster); listen: 0.0.0.0:2222 (the chief's address); name: worker-0 (the task's index)"},
        Row{"TfConfigSecondOfTwoWorkers",
            {},
            {{"TF_CONFIG", TfConfig(kTwoWorkers, "", 1)}},
            "role: worker, task 1 of 2 (TF_CONFIG's task worker 1); chief: grpc://a:2222 (TF_CONFIG's cluster); name: "
            "worker-1 (the task's index)"},
        Row{"TfConfigOfOneTask",
            {},
            {{"TF_CONFIG", R"({"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}})"}},
            "role: chief, computes (TF_CONFIG's task chief 0); listen: 127.0.0.1:0 (no other task); name: worker-0 "
            "(the task's index)"},
        Row{"SlurmFirst",
            {},
            Slurm(0, 4),
            "role: chief, task 0 of 4, computes (SLURM_PROCID=0, SLURM_STEP_NUM_TASKS=4); chief: grpc://n07:18042 "
            "(first of SLURM_STEP_NODELIST=n[07-08],login, port 15000 + SLURM_JOB_ID % 10000); listen: 0.0.0.0:18042 "
            "(the chief's address); name: worker-0 (the task's index)"},
        Row{"SlurmThird",
            {},
            Slurm(2, 4),
            "role: worker, task 2 of 4 (SLURM_PROCID=2, SLURM_STEP_NUM_TASKS=4); chief: grpc://n07:18042 (first of "
            "SLURM_STEP_NODELIST=n[07-08],login, port 15000 + SLURM_JOB_ID % 10000); name: worker-2 (the task's "
            "index)"},
        Row{"SlurmFirstWithAFile",
            {{"workers", "0"}},
            And(Slurm(0, 4), {{"LOCKSTEP_MASTER", "file:/s/address"}, {"LOCKSTEP_LOGDIR", "/s"}}),
            "role: chief, task 0 of 4, computes (SLURM_PROCID=0, SLURM_STEP_NUM_TASKS=4); chief: file:/s/address "
            "(LOCKSTEP_MASTER); listen: 0.0.0.0:0 (any port, which the file tells); advertise: n08 (SLURMD_NODENAME); "
            "workers: 0 (--workers); logdir: /s (LOCKSTEP_LOGDIR)"},
        Row{"SlurmArrayOfWorkers",
            {},
            And(Slurm(0, 1),
                {{"LOCKSTEP_ROLE", "worker"}, {"LOCKSTEP_MASTER", "file:/s/address"}, {"SLURM_ARRAY_TASK_ID", "7"}}),
            "role: worker, task 0 of 1 (LOCKSTEP_ROLE); chief: file:/s/address (LOCKSTEP_MASTER); name: worker-7 "
            "(SLURM_ARRAY_TASK_ID=7)"},
        Row{"KubernetesFirst",
            {},
            Kubernetes(0),
            "role: chief, task 0, computes (JOB_COMPLETION_INDEX=0); chief: grpc://fashion-mnist-0.fashion-mnist:2222 "
            "(HOSTNAME=fashion-mnist-0, service fashion-mnist, port 2222); listen: 0.0.0.0:2222 (the chief's address); "
            "name: worker-0 (the task's index)"},
        Row{"KubernetesThird",
            {},
            Kubernetes(2),
            "role: worker, task 2 (JOB_COMPLETION_INDEX=2); chief: grpc://fashion-mnist-0.fashion-mnist:2222 "
            "(HOSTNAME=fashion-mnist-2, service fashion-mnist, port 2222); name: worker-2 (the task's index)"},
        Row{"PytorchJob",
            {},
            {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-master-0"}, {"MASTER_PORT", "23456"}},
            "role: worker, task 1 of 2 (RANK=1, WORLD_SIZE=2); chief: grpc://job-master-0:23456 "
            "(MASTER_ADDR=job-master-0, MASTER_PORT=23456); name: worker-1 (the task's index)"},
        Row{"Torchrun",
            {},
            Torchrun(3),
            "role: worker, task 3 of 4 (RANK=3, WORLD_SIZE=4); chief: grpc://h0:29501 (MASTER_ADDR=h0, "
            "MASTER_PORT=29500 + 1, next to torchrun's store); name: worker-3 (the task's index)"},
        Row{"TrainJobOfKubernetes",
            {},
            {{"JOB_COMPLETION_INDEX", "1"},
             {"HOSTNAME", "tj-node-0-1"},
             {"PET_NODE_RANK", "1"},
             {"PET_NNODES", "2"},
             {"PET_NPROC_PER_NODE", "3"},
             {"PET_MASTER_ADDR", "tj-node-0-0.tj"},
             {"PET_MASTER_PORT", "29400"}},
            "role: worker, task 1 (JOB_COMPLETION_INDEX=1); chief: grpc://tj-node-0-0.tj:29400 "
            "(PET_MASTER_ADDR=tj-node-0-0.tj, PET_MASTER_PORT=29400); name: worker-1 (the task's index)"},
        Row{"TrainJob",
            {},
            {{"PET_NODE_RANK", "0"},
             {"PET_NNODES", "1:4"},
             {"PET_NPROC_PER_NODE", "3"},
             {"PET_MASTER_ADDR", "fd00::1"}},
            "role: chief, task 0, computes (PET_NODE_RANK=0); chief: grpc://[fd00::1]:29500 (PET_MASTER_ADDR=fd00::1); "
            "listen: [::]:29500 (the chief's address); workers: 3 (PET_NPROC_PER_NODE=3); name: worker-0 (the task's "
            "index)"},
        Row{"MpiOnOneMachine",
            {},
            {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
            "role: worker, task 1 of 2 (OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=2); chief: grpc://127.0.0.1:2222 "
            "(OMPI_COMM_WORLD_LOCAL_SIZE=2, port 2222); name: worker-1 (the task's index)"},
        Row{"SlurmWithMasterAddress",
            {},
            And(Slurm(1, 2), {{"MASTER_ADDR", "n07-ib"}, {"MASTER_PORT", "29500"}}),
            "role: worker, task 1 of 2 (SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2); chief: grpc://n07-ib:29500 "
            "(MASTER_ADDR=n07-ib, MASTER_PORT=29500); name: worker-1 (the task's index)"},
        Row{"TorchrunInOneSlurmTask",
            {},
            And(Slurm(0, 1), Torchrun(3)),
            "role: worker, task 3 of 4 (RANK=3, WORLD_SIZE=4); chief: grpc://h0:29501 (MASTER_ADDR=h0, "
            "MASTER_PORT=29500 + 1, next to torchrun's store); name: worker-3 (the task's index)"},
        Row{"FlagsBeforeVariablesBeforeLaunchers",
            {{"name", "w"}, {"index", "1"}},
            And(Slurm(0, 2), {{"LOCKSTEP_NAME", "v"}, {"LOCKSTEP_INDEX", "0"}, {"LOCKSTEP_MASTER", "c:7"}}),
            "role: worker, task 1 (--index); chief: grpc://c:7 (LOCKSTEP_MASTER); name: w (--name)"},
        Row{"LauncherOfAFlag",
            {{"launcher", "torch"}},
            And(Slurm(0, 2), And(Torchrun(3), {{"TF_CONFIG", "{"}})),
            "role: worker, task 3 of 4 (RANK=3, WORLD_SIZE=4); chief: grpc://h0:29501 (MASTER_ADDR=h0, "
            "MASTER_PORT=29500 + 1, next to torchrun's store); name: worker-3 (the task's index)"}),
    [](const ::testing::TestParamInfo<Row>& row) { return std::string(row.param.name); });

TEST(ResolvedTaskErrorTest, NamesSourcesThatContradict) {
  EXPECT_EQ(TextOf({}, And(Slurm(1, 2), Torchrun(3))),
            "SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2 makes this process the worker, task 1 of 2, but RANK=3, "
            "WORLD_SIZE=4 makes it the worker, task 3 of 4; say whom to follow with --launcher=slurm or "
            "--launcher=torch");
  EXPECT_THAT(TextOf({}, And({{"TF_CONFIG", TfConfig(kKubeflow, "worker", 0)}}, Slurm(0, 4))),
              HasSubstr("say whom to follow with --launcher=tf_config or --launcher=slurm"));
  EXPECT_THAT(TextOf({}, {{"TF_CONFIG", TfConfig(kKubeflow, "worker", 0)}, {"MASTER_ADDR", "h"}}),
              HasSubstr("the chief is at run-chief-0:2222 (TF_CONFIG's cluster) or at h:29500 (MASTER_ADDR=h)"));
}

TEST(ResolvedTaskErrorTest, RefusesASparseCluster) {
  EXPECT_THAT(TextOf({}, {{"TF_CONFIG", R"({"sparseCluster": {"worker": {"1": "a:1"}}, "task": {"type": "worker"}})"}}),
              HasSubstr("TF_CONFIG has a \"sparseCluster\""));
}

TEST(ResolvedTaskErrorTest, NamesTheMissingValue) {
  EXPECT_EQ(TextOf({}, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
            "the worker (OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=2) needs the chief's address, which no variable "
            "gives: set --master or LOCKSTEP_MASTER for every task, to grpc://HOST:PORT or to file:PATH on a disk that "
            "all see");
  EXPECT_THAT(TextOf({{"role", "worker"}}, Slurm(0, 1)), HasSubstr("the worker (--role) needs the chief's address"));
  EXPECT_THAT(TextOf({{"role", "evaluator"}}, {}), HasSubstr("--logdir, or TF_CONFIG's model_dir"));
  EXPECT_THAT(TextOf({}, {{"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}),
              HasSubstr("SLURM_JOB_ID=1, SLURM_NTASKS=4, but SLURM_STEP_NODELIST is absent"));
}

TEST(ResolvedTaskErrorTest, NamesTheMalformedValue) {
  EXPECT_EQ(TextOf({{"role", "cheif"}}, {}), "--role is \"cheif\", must be chief, worker, ps or evaluator");
  EXPECT_EQ(TextOf({}, {{"LOCKSTEP_INDEX", "x"}}), "LOCKSTEP_INDEX is \"x\", must be a whole number in [0, 1000000)");
  EXPECT_EQ(TextOf({{"launcher", "ssh"}}, {}),
            "--launcher is \"ssh\", must be one of none, tf_config, slurm, kubernetes, torch, mpi");
  EXPECT_EQ(TextOf({{"launcher", "slurm"}}, {}), "--launcher is slurm, but the environment has none of its variables");
  EXPECT_EQ(TextOf({{"index", "2"}, {"tasks", "2"}}, {}),
            "the task's index is 2, must be below the number of tasks, 2");
  EXPECT_THAT(TextOf({}, {{"JOB_COMPLETION_INDEX", "one"}}), HasSubstr("JOB_COMPLETION_INDEX is \"one\""));
  EXPECT_THAT(TextOf({}, {{"RANK", "4"}, {"WORLD_SIZE", "4"}}), HasSubstr("RANK=4, WORLD_SIZE=4: the index must be"));
  EXPECT_THAT(TextOf({}, {{"TF_CONFIG", "{"}}), HasSubstr("TF_CONFIG is no JSON object"));
  EXPECT_THAT(TextOf({{"master", "c"}}, {}), HasSubstr("--master: "));
  EnvironmentMap slurm = Slurm(0, 2);
  slurm["SLURM_STEP_NODELIST"] = "n[1";
  EXPECT_THAT(TextOf({}, slurm), HasSubstr("the host list's \"n[1\" has a [ without a ]"));
  EXPECT_THAT(TextOf({{"role", "chief"}, {"master", "grpc://a:1,grpc://b:1"}}, {}), HasSubstr("say with --listen"));
  EXPECT_THAT(TextOf({{"workers", "0"}, {"master", "a:1"}}, {}), HasSubstr("--workers is \"0\", must be"));
}

}  // namespace
}  // namespace lockstep
