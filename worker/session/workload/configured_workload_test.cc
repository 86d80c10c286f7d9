#include "lockstep/worker/session/workload/configured_workload.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ConfiguredWorkloadTest, ItsOwnNumberOfThreadsGoesBeforeTheConfigured) {
  config::v1::RunSpec config;
  WorkloadOptions options;
  EXPECT_EQ(ComputeThreads(config, options), 1);
  config.mutable_cluster()->set_compute_threads(3);
  EXPECT_EQ(ComputeThreads(config, options), 3);
  options.compute_threads = 2;
  EXPECT_EQ(ComputeThreads(config, options), 2);
}

}  // namespace
}  // namespace lockstep
