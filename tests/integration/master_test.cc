// Tests how workers find the chief: by several addresses, or through a file that changes.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/server/process/address_file.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class MasterTest : public ::testing::Test {
 protected:
  MasterTest() {
    options_.config = SmallRunSpec(/*steps=*/60, /*slots=*/2);
    options_.before_batch = [this](int64_t step) { step_ = step; };
  }
  void Start(const std::string& master) {
    options_.master = master;
    cluster_ = std::make_unique<TestCluster>(options_);
    ASSERT_TRUE(cluster_->fs()->CreateDirectory("/run").ok());
    AddressFile::Options file;
    file.fs = cluster_->fs();
    file.path = "/run/chief";
    file_ = std::make_unique<AddressFile>(AddressFile::Create(file, "127.0.0.1:0").value());
  }
  void AwaitStep(int64_t step) {
    while (step_ < step) std::this_thread::yield();
  }
  std::string UndisturbedDigest() {
    TestCluster::Options undisturbed;
    undisturbed.config = options_.config;
    return TrainAndDigest(undisturbed, /*workers=*/1).value();
  }

  TestCluster::Options options_;
  std::atomic<int64_t> step_{0};
  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<AddressFile> file_;
};

TEST_F(MasterTest, AWorkerFollowsAChiefThatMoves) {
  Start("file:/run/chief");
  const int worker = cluster_->StartWorker();  // starts before a chief or a file exists
  ASSERT_TRUE(cluster_->StartChief().ok());
  const std::string first = cluster_->address();
  ASSERT_TRUE(file_->Write(first).ok());
  AwaitStep(10);
  cluster_->KillChief();
  cluster_->MoveChief();
  ASSERT_TRUE(cluster_->StartChief().ok());
  ASSERT_TRUE(file_->Write(cluster_->address()).ok());
  EXPECT_TRUE(cluster_->Wait().ok());
  EXPECT_TRUE(cluster_->JoinWorker(worker).ok());
  EXPECT_EQ(cluster_->Digest().value(), UndisturbedDigest());
}

TEST_F(MasterTest, ALateWorkerLearnsOfTheEnd) {
  Start("file:/run/chief");
  ASSERT_TRUE(cluster_->StartChief().ok());
  ASSERT_TRUE(file_->Write(cluster_->address()).ok());
  cluster_->StartWorker();
  const absl::Status run = cluster_->Wait();
  EXPECT_TRUE(run.ok());
  ASSERT_TRUE(file_->End(run).ok());
  cluster_->KillChief();
  EXPECT_TRUE(cluster_->JoinWorker(cluster_->StartWorker()).ok()) << "there is no chief, and the worker does not wait";
  ASSERT_TRUE(file_->End(absl::InvalidArgumentError("the loss of step 5 is not finite")).ok());
  const absl::Status failed = cluster_->JoinWorker(cluster_->StartWorker());
  EXPECT_TRUE(absl::IsFailedPrecondition(failed));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("step 5"));
}

TEST_F(MasterTest, TakesTheFirstAddressThatAnswers) {
  Start("grpc://127.0.0.1:1,grpc://CHIEF");
  ASSERT_TRUE(cluster_->StartChief().ok());
  const int worker = cluster_->StartWorker();
  AwaitStep(10);
  cluster_->KillChief();
  ASSERT_TRUE(cluster_->StartChief().ok());
  EXPECT_TRUE(cluster_->Wait().ok());
  EXPECT_TRUE(cluster_->JoinWorker(worker).ok());
  EXPECT_EQ(cluster_->Digest().value(), UndisturbedDigest());
}

}  // namespace
}  // namespace lockstep
