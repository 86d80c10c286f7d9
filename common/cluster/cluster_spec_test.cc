#include "lockstep/common/cluster/cluster_spec.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ClusterSpec Dense() {
  const auto cluster = ClusterSpec::FromLists({{"worker", {"w0:1", "w1:1"}}, {"ps", {"p0:1"}}});
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *cluster;
}

ClusterSpec Sparse() {
  const auto cluster = ClusterSpec::Create({{"worker", {{1, "x:1"}, {3, "y:1"}}}});
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *cluster;
}

template <typename T>
std::string ErrorOf(const absl::StatusOr<T>& result) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

TEST(ClusterSpecTest, HoldsDenseJobs) {
  const ClusterSpec cluster = Dense();
  EXPECT_THAT(cluster.jobs(), ElementsAre("ps", "worker"));
  EXPECT_EQ(*cluster.NumTasks("worker"), 2);
  EXPECT_THAT(*cluster.TaskIndices("worker"), ElementsAre(0, 1));
  EXPECT_THAT(*cluster.TaskList("worker"), ElementsAre(std::string("w0:1"), std::string("w1:1")));
  EXPECT_EQ(*cluster.TaskAddress("ps", 0), "p0:1");
  EXPECT_EQ(cluster.ToString(), "ps: p0:1; worker: w0:1, w1:1");
}

// CL-02
TEST(ClusterSpecTest, HoldsSparseJobs) {
  const ClusterSpec cluster = Sparse();
  EXPECT_EQ(*cluster.NumTasks("worker"), 2);
  EXPECT_THAT(*cluster.TaskList("worker"),
              ElementsAre(absl::nullopt, std::string("x:1"), absl::nullopt, std::string("y:1")));
  EXPECT_THAT(*cluster.TaskIndices("worker"), ElementsAre(1, 3));
  EXPECT_EQ(cluster.ToString(), "worker: {1: x:1, 3: y:1}");
}

// CL-03
TEST(ClusterSpecTest, NamesAJobOrTaskThatItDoesNotHave) {
  const ClusterSpec cluster = Dense();
  const char* unknown = "job \"gpu\" is not in the cluster, which has ps, worker";
  EXPECT_EQ(ErrorOf(cluster.NumTasks("gpu")), unknown);
  EXPECT_EQ(ErrorOf(cluster.TaskIndices("gpu")), unknown);
  EXPECT_EQ(ErrorOf(cluster.TaskList("gpu")), unknown);
  EXPECT_EQ(ErrorOf(cluster.TaskAddress("gpu", 0)), unknown);
  EXPECT_EQ(ErrorOf(cluster.TaskAddress("worker", 2)), "job \"worker\" has no task 2, it has 0, 1");
  EXPECT_EQ(ErrorOf(Sparse().TaskAddress("worker", 2)), "job \"worker\" has no task 2, it has 1, 3");
  EXPECT_EQ(ErrorOf(ClusterSpec().NumTasks("ps")), "job \"ps\" is not in the cluster, which has no jobs");
}

// CL-04
TEST(ClusterSpecTest, WithoutJobsIsEmpty) {
  EXPECT_TRUE(ClusterSpec().empty());
  EXPECT_TRUE(ClusterSpec::Create({})->empty());
  EXPECT_FALSE(Dense().empty());
}

TEST(ClusterSpecTest, EqualsByValue) {
  EXPECT_EQ(Dense(), Dense());
  EXPECT_NE(Dense(), Sparse());
  // A dense map and a list result in equal clusters.
  EXPECT_EQ(*ClusterSpec::Create({{"a", {{0, "x"}, {1, "y"}}}}), *ClusterSpec::FromLists({{"a", {"x", "y"}}}));
  EXPECT_NE(*ClusterSpec::Create({{"a", {{0, "x"}, {2, "y"}}}}), *ClusterSpec::FromLists({{"a", {"x", "y"}}}));
}

TEST(ClusterSpecTest, RefusesInvalidTasks) {
  EXPECT_THAT(ErrorOf(ClusterSpec::FromLists({{"", {"x"}}})), HasSubstr("a job without a name"));
  EXPECT_THAT(ErrorOf(ClusterSpec::FromLists({{"ps", {}}})), HasSubstr("job \"ps\" has no tasks"));
  EXPECT_THAT(ErrorOf(ClusterSpec::FromLists({{"ps", {"x", ""}}})), HasSubstr("task 1 of job \"ps\" has no address"));
  EXPECT_THAT(ErrorOf(ClusterSpec::Create({{"ps", {{-1, "x"}}}})), HasSubstr("job \"ps\" has a task -1"));
  EXPECT_THAT(ErrorOf(ClusterSpec::Create({{"ps", {{2000000000, "x"}}}})), HasSubstr("must be in [0, 1000000)"));
}

TEST(ResolveTaskTest, TakesTheGivenTask) {
  const auto task = ResolveTask(Dense(), "worker", 1);
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task->job, "worker");
  EXPECT_EQ(task->index, 1);
  EXPECT_EQ(task->address, "w1:1");
}

TEST(ResolveTaskTest, InfersAUniqueTask) {
  EXPECT_EQ(ResolveTask(Dense(), "ps", absl::nullopt)->address, "p0:1");
  EXPECT_EQ(ResolveTask(Sparse(), absl::nullopt, 3)->address, "y:1");
  EXPECT_EQ(ResolveTask(*ClusterSpec::Create({{"a", {{5, "x"}}}}), absl::nullopt, absl::nullopt)->index, 5);
}

// CL-06
TEST(ResolveTaskTest, RefusesToGuess) {
  EXPECT_EQ(ErrorOf(ResolveTask(Dense(), absl::nullopt, 0)),
            "the cluster has 2 jobs (ps, worker), say which one this process is of");
  EXPECT_EQ(ErrorOf(ResolveTask(Dense(), "worker", absl::nullopt)),
            "job \"worker\" has 2 tasks, say which one this process is");
  EXPECT_THAT(ErrorOf(ResolveTask(Dense(), "gpu", 0)), HasSubstr("job \"gpu\" is not in the cluster"));
  EXPECT_THAT(ErrorOf(ResolveTask(Dense(), "ps", 1)), HasSubstr("has no task 1"));
  EXPECT_THAT(ErrorOf(ResolveTask(ClusterSpec(), absl::nullopt, absl::nullopt)), HasSubstr("has 0 jobs"));
}

}  // namespace
}  // namespace lockstep
