#include <string>

#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

TestCluster::Options OptionsOf(const config::v1::RunSpec& config) {
  TestCluster::Options options;
  options.config = config;
  options.local = true;
  return options;
}

// Under ASYNC, stream 0 has the same batches and random numbers as the only slot of the deterministic run.
TEST(AsynchronousTest, ALoneWorkerComputesTheSameBits) {
  config::v1::RunSpec config = SmallRunSpec(/*steps=*/20, /*slots=*/1);
  const auto deterministic = TrainAndDigest(OptionsOf(config), /*workers=*/1);
  ASSERT_TRUE(deterministic.ok()) << deterministic.status();
  config.mutable_training()->mutable_async();
  const auto asynchronous = TrainAndDigest(OptionsOf(config), /*workers=*/1);
  ASSERT_TRUE(asynchronous.ok()) << asynchronous.status();
  EXPECT_EQ(*asynchronous, *deterministic);
}

TEST(AsynchronousTest, EachStreamReadsTheWholeInput) {
  config::v1::RunSpec config = SmallRunSpec(/*steps=*/1, /*slots=*/1);
  config.mutable_training()->clear_steps();
  config.mutable_training()->set_unbounded(true);
  config.mutable_training()->mutable_async();
  config.mutable_input()->set_epochs(1);
  config.mutable_input()->mutable_split(0)->mutable_synthetic()->set_examples(10 * config.input().batch_size());
  TestCluster::Options options = OptionsOf(config);
  // No stream ends before both workers have one, because each waits for the other at its second batch. Waiting at the
  // first batch would not work, because workers also read it when they join.
  Mutex mutex;
  CondVar arrived;
  int readers = 0;
  options.before_batch = [&](int64_t position) {
    if (position != 1) return;
    MutexLock lock(&mutex);
    ++readers;
    arrived.SignalAll();
    while (readers < 2) arrived.Wait(&mutex);
  };
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  for (int i = 0; i < 2; ++i) cluster.StartWorker();
  ASSERT_TRUE(cluster.Wait().ok());
  EXPECT_EQ(cluster.chief()->GetStatus().global_step(), 20);
  for (const absl::Status& status : cluster.JoinWorkers()) EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace lockstep
