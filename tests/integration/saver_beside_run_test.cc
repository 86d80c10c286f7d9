// Tests that a user's Saver in a run's logdir affects neither the run's checkpoints nor the bits of its weights.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/tests/testing/test_cluster.h"
#include "lockstep/train/saver/saver.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 12;

class SaverBesideRunTest : public ::testing::Test {
 protected:
  SaverBesideRunTest() {
    options_.config = SmallRunSpec(kSteps, 2);
    options_.config.mutable_checkpoint()->set_every_steps(2);
    options_.local = true;
    options_.housekeeping_period = absl::Milliseconds(1);
  }

  std::string Reference() const { return TrainAndDigest(options_, 1).value_or("none"); }
  // Returns options that make workers wait in the middle of the run until Release.
  TestCluster::Options WithPause() {
    TestCluster::Options options = options_;
    options.before_batch = [this](int64_t step) {
      MutexLock lock(&mutex_);
      while (step >= kSteps / 2 && !is_released_) {
        is_waiting_ = true;
        changed_.SignalAll();
        changed_.Wait(&mutex_);
      }
    };
    return options;
  }
  void AwaitPause() {
    MutexLock lock(&mutex_);
    while (!is_waiting_) changed_.Wait(&mutex_);
  }
  void Release() {
    MutexLock lock(&mutex_);
    is_released_ = true;
    changed_.SignalAll();
  }
  static std::vector<std::string> RunsCheckpoints(TestCluster* cluster) {
    std::vector<std::string> found;
    const std::vector<std::string> names = cluster->fs()->ListDirectory(TestCluster::kLogdir).value();
    for (const std::string& name : names) {
      if (absl::StartsWith(name, "model.ckpt-") && absl::EndsWith(name, ".index")) found.push_back(name);
    }
    return found;
  }

  TestCluster::Options options_;
  Mutex mutex_;
  CondVar changed_;
  bool is_waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_released_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(SaverBesideRunTest, TheRunResumesFromItsOwnAndKeepsThem) {
  TestCluster cluster(WithPause());
  ASSERT_TRUE(cluster.StartChief().ok());
  cluster.StartWorker();
  AwaitPause();
  cluster.chief()->ends()->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(cluster.Wait()));
  Release();
  cluster.KillChief();
  const std::vector<std::string> before = RunsCheckpoints(&cluster);
  ASSERT_FALSE(before.empty());

  // Saves some of the variables, with later steps.
  train::SaverOptions options;
  options.fs = cluster.fs();
  options.max_to_keep = 1;
  options.latest_filename = "parts";
  const auto saver = train::Saver::Create(options).value();
  const std::string path = absl::StrCat(TestCluster::kLogdir, "/part");
  const auto part = train::NamedFloats("part", {2}, {1, 2}).value();
  for (int64_t step : {1000, 1001}) ASSERT_TRUE(saver->Save(path, step, {part}).ok());
  EXPECT_EQ(RunsCheckpoints(&cluster), before);
  // Makes the state file name the Saver's checkpoint.
  ASSERT_TRUE(WriteCheckpointState(cluster.fs(), TestCluster::kLogdir, path + "-1001", {}).ok());

  ASSERT_TRUE(cluster.StartChief().ok());
  cluster.StartWorker();
  ASSERT_TRUE(cluster.Wait().ok());
  cluster.JoinWorkers();
  EXPECT_EQ(cluster.Digest().value_or("none"), Reference());
  EXPECT_TRUE(CheckpointExists(cluster.fs(), path + "-1001").value()) << "the run deletes none of the user's";
}

}  // namespace
}  // namespace lockstep
