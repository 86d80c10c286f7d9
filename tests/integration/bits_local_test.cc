// Tests that the weights depend only on the configuration, the data and the seed. Uses a cluster without sockets, whose
// threads run only our own code, so that the thread sanitizer sees all data that they share.
#include <algorithm>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 40;
constexpr int64_t kSlots = 4;

// The newest step that any worker has reached.
class Progress {
 public:
  void Reach(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    step_ = std::max(step_, step);
    reached_.SignalAll();
  }
  void Await(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (step_ < step) reached_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar reached_;
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
};

TestCluster::Options LocalCluster(Progress* progress = nullptr) {
  TestCluster::Options options;
  options.config = SmallRunSpec(kSteps, kSlots);
  options.config.mutable_checkpoint()->set_every_steps(3);
  options.local = true;
  options.housekeeping_period = absl::Milliseconds(1);
  if (progress != nullptr) options.before_batch = [progress](int64_t step) { progress->Reach(step); };
  return options;
}

std::string Reference() {
  static const std::string* const digest = [] {
    const auto result = TrainAndDigest(LocalCluster(), 1);
    EXPECT_TRUE(result.ok()) << result.status();
    return new std::string(result.value_or("none"));
  }();
  return *digest;
}

TEST(BitsLocalTest, DoNotDependOnThreeWorkers) {
  const auto digest = TrainAndDigest(LocalCluster(), 3);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*digest, Reference());
}

TEST(BitsLocalTest, SurviveDyingWorkersAndReads) {
  Progress progress;
  TestCluster cluster(LocalCluster(&progress));
  ASSERT_TRUE(cluster.StartChief().ok());
  int victim = cluster.StartWorker();
  cluster.StartWorker(/*compute_threads=*/2);
  cluster.StartWorker();
  for (const int64_t step : {5, 12, 19, 26, 33}) {
    progress.Await(step);
    EXPECT_GE(cluster.chief()->GetStatus().global_step(), step);
    cluster.KillWorker(victim);
    EXPECT_TRUE(cluster.chief()->training()->Save().ok());
    victim = cluster.StartWorker();
  }
  ASSERT_TRUE(cluster.Wait().ok());
  cluster.JoinWorkers();
  EXPECT_EQ(cluster.Digest().value_or("none"), Reference());
}

TEST(BitsLocalTest, SurviveAChiefThatIsKilled) {
  Progress progress;
  TestCluster cluster(LocalCluster(&progress));
  for (const int64_t step : {7, 17, 29}) {
    ASSERT_TRUE(cluster.StartChief().ok());
    for (int i = 0; i < 3; ++i) cluster.StartWorker();
    progress.Await(step);
    cluster.KillChief();
  }
  ASSERT_TRUE(cluster.StartChief().ok());
  for (int i = 0; i < 3; ++i) cluster.StartWorker();
  ASSERT_TRUE(cluster.Wait().ok());
  cluster.JoinWorkers();
  EXPECT_EQ(cluster.Digest().value_or("none"), Reference());
}

TEST(BitsLocalTest, SurviveAStopAndAResume) {
  Progress progress;
  TestCluster cluster(LocalCluster(&progress));
  ASSERT_TRUE(cluster.StartChief().ok());
  for (int i = 0; i < 3; ++i) cluster.StartWorker();
  progress.Await(kSteps / 2);
  cluster.chief()->ends()->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(cluster.Wait()));
  cluster.KillChief();

  ASSERT_TRUE(cluster.StartChief().ok());
  EXPECT_GE(cluster.chief()->GetStatus().global_step(), kSteps / 2) << "the last step was saved";
  for (int i = 0; i < 3; ++i) cluster.StartWorker();
  ASSERT_TRUE(cluster.Wait().ok());
  cluster.JoinWorkers();
  EXPECT_EQ(cluster.Digest().value_or("none"), Reference());
}

}  // namespace
}  // namespace lockstep
