// Tests a chief with workers that have served another run.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/server/chief/run/run_identity.h"
#include "lockstep/server/chief/testing/chief_fixture.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFirst[] = "0000000000000001", kSecond[] = "0000000000000002";

class OtherRunTest : public ChiefFixture {
 protected:
  // Opens a session for a worker that has served `run` up to `step`.
  absl::Status OpenAs(const std::string& run, int64_t step) {
    served_run_ = run;
    served_step_ = step;
    const absl::Status status = OpenSession("old").status();
    served_run_.clear();
    served_step_ = 0;
    return status;
  }
  void ExpectRefused(const absl::Status& status) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("old has served run other"), HasSubstr(chief_->GetStatus().run_id())));
    EXPECT_TRUE(OpenSession("new").ok()) << "the run continues";
  }
  void ExpectEnds(const absl::Status& status, const std::string& what) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status << ": the worker keeps looking for its run";
    EXPECT_TRUE(absl::IsUnavailable(OpenSession("new").status()));
    const absl::Status ended = chief_->ends()->Wait();
    EXPECT_EQ(ExitCodeOf(ended), kExitBadConfiguration) << ended;
    EXPECT_THAT(std::string(ended.message()), AllOf(HasSubstr("old has served run other up to step 5"), HasSubstr(what),
                                                    HasSubstr(chief_->GetStatus().run_id()), HasSubstr("--new_run")));
  }
};

TEST_F(OtherRunTest, TheRecordKeepsTheRunsId) {
  for (int start = 0; start < 3; ++start) {
    ASSERT_TRUE(Restart().ok());
    EXPECT_EQ(OpenSession("a")->run_id(), kFirst);
    EXPECT_EQ(chief_->GetStatus().run_id(), kFirst);
    EXPECT_EQ(Record().run_id(), kFirst);
  }
  logdir_ = "another";
  ASSERT_TRUE(Restart().ok());
  EXPECT_NE(OpenSession("a")->run_id(), kFirst);
}

TEST_F(OtherRunTest, ARecordWithoutAnIdGetsOne) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  v1::RunRecord old = Record();
  old.clear_run_id();
  worker_.reset();
  chief_.reset();
  WriteRecord(old);
  for (int start = 0; start < 2; ++start) {
    ASSERT_TRUE(Restart().ok());
    EXPECT_EQ(Record().run_id(), kSecond);
    EXPECT_EQ(chief_->GetStatus().global_step(), 4);
  }
}

TEST_F(OtherRunTest, AWorkerOfTheRunComesBack) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  ASSERT_TRUE(Restart().ok());
  EXPECT_TRUE(OpenAs(kFirst, 9).ok()) << "of steps that are computed again";
}

TEST_F(OtherRunTest, AnEstablishedRunRefusesAWorkerOfAnother) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  ASSERT_TRUE(Restart().ok());
  ExpectRefused(OpenAs("other", 100));
  EXPECT_EQ(chief_->GetStatus().phase(), v1::RunStatus::TRAINING);
}

TEST_F(OtherRunTest, ALaterStepEndsAChiefWithAnEmptyLogdir) {
  ASSERT_TRUE(Start().ok());
  ExpectEnds(OpenAs("other", 5), "the logdir logdir was empty");
  EXPECT_FALSE(memory_.Exists("logdir/lockstep.textproto").value());
}

TEST_F(OtherRunTest, ALaterStepEndsAChiefWithoutALogdir) {
  logdir_ = "";
  ASSERT_TRUE(Start().ok());
  ExpectEnds(OpenAs("other", 5), "this chief has no logdir");
}

TEST_F(OtherRunTest, ARunThatShouldNotHaveBegunIsNotResumed) {
  ASSERT_TRUE(Start().ok());
  TrainTo(3);
  ExpectEnds(OpenAs("other", 5), "the logdir logdir was empty");
  const absl::Status again = Restart();
  EXPECT_TRUE(absl::IsFailedPrecondition(again)) << again;
  EXPECT_THAT(std::string(again.message()), AllOf(HasSubstr("run other up to step 5"), HasSubstr(kFirst)));
  EXPECT_EQ(accepted_, 1);

  new_run_ = true;
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(chief_->GetStatus().run_id(), kFirst);
  ExpectRefused(OpenAs("other", 5));
  new_run_ = false;
  EXPECT_TRUE(Restart().ok()) << "it is logged once";
}

TEST_F(OtherRunTest, AnEarlierStepEndsNoChief) {
  ASSERT_TRUE(Start().ok());
  ExpectRefused(OpenAs("other", 0));
  TrainTo(3);
  ExpectRefused(OpenAs("other", 3));
}

TEST_F(OtherRunTest, ANewRunRefusesWorkersOfAnother) {
  new_run_ = true;
  ASSERT_TRUE(Start().ok());
  ExpectRefused(OpenAs("other", 5));
  TrainTo(3);
  ExpectRefused(OpenAs("other", 5));
}

TEST_F(OtherRunTest, AStrayWorkerEndsNoRunThatHasTrainedForAMinute) {
  ASSERT_TRUE(Start().ok());
  clock_.Advance(2 * kOtherRunLimit);
  TrainTo(3);
  clock_.Advance(kOtherRunLimit + absl::Milliseconds(1));
  ExpectRefused(OpenAs("other", 5));
  EXPECT_FALSE(Record().has_other_run());
}

TEST_F(OtherRunTest, AFinishedRunIsNotEnded) {
  ASSERT_TRUE(Start().ok());
  TrainTo(10);
  ExpectRefused(OpenAs("other", 50));
}

TEST_F(OtherRunTest, CheckpointsWithoutARecordAreNoEmptyLogdir) {
  ASSERT_TRUE(Start().ok());
  TrainAndSave(4);
  worker_.reset();
  chief_.reset();
  ASSERT_TRUE(memory_.Remove("logdir/lockstep.textproto").ok());
  ASSERT_TRUE(Start().ok());
  ExpectRefused(OpenAs("other", 5));
  EXPECT_EQ(chief_->GetStatus().global_step(), 4);
}

TEST_F(OtherRunTest, TheIdOfAPeerIsBounded) {
  ASSERT_TRUE(Start().ok());
  const absl::Status status = OpenAs(std::string(257, 'x'), 5);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("xxx")));
}

}  // namespace
}  // namespace lockstep
