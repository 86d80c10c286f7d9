#include "lockstep/train/session/end/await_run_end.h"

#include <deque>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/client/testing/fake_chief_client.h"
#include "lockstep/common/cluster/end_of_run.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/testing/jumping_clock.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

// A chief that answers each GetStatus with the next of `answers`, and is gone after the last one.
class AnsweringChief : public FakeChiefClient {
 public:
  absl::StatusOr<v1::RunStatus> GetStatus() override {
    ++asked;
    if (!mark.ok()) return mark;
    if (answers.empty()) return absl::UnavailableError("connection refused");
    v1::RunStatus status;
    status.set_phase(answers.front());
    status.set_message("the loss of slot 1 is nan");
    answers.pop_front();
    return status;
  }

  std::deque<v1::RunStatus::Phase> answers;
  int asked = 0;
  // The end mark of an address file, returned instead of an answer.
  absl::Status mark;
};

class AwaitRunEndTest : public ::testing::Test {
 protected:
  AwaitRunEndTest() {
    options_.master = "grpc://chief:2222";
    options_.clock = &clock_;
    options_.client = &chief_;
    chief_.config.mutable_cluster()->set_chief_wait_seconds(600);
  }

  JumpingClock clock_;
  AnsweringChief chief_;
  AwaitRunEndOptions options_;
};

TEST_F(AwaitRunEndTest, EndsWellWithTheRun) {
  chief_.answers = {v1::RunStatus::WAITING_FOR_MODEL, v1::RunStatus::TRAINING, v1::RunStatus::FINISHED};
  EXPECT_TRUE(AwaitRunEnd(options_).ok());
  EXPECT_EQ(chief_.asked, 3);
  EXPECT_EQ(clock_.elapsed(), absl::Milliseconds(500));
}

TEST_F(AwaitRunEndTest, FailsWithTheRun) {
  chief_.answers = {v1::RunStatus::TRAINING, v1::RunStatus::FAILED};
  const absl::Status status = AwaitRunEnd(options_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the run has failed: the loss of slot 1 is nan"));
}

TEST_F(AwaitRunEndTest, LooksForAnAbsentChiefUntilTheLimit) {
  chief_.answers = {v1::RunStatus::TRAINING, v1::RunStatus::TRAINING, v1::RunStatus::TRAINING};
  const absl::Status status = AwaitRunEnd(options_);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing was heard of the chief at grpc://chief:2222 for 10m"));
  EXPECT_EQ(clock_.elapsed(), absl::Milliseconds(500) + absl::Minutes(10) + absl::Milliseconds(250));
}

TEST_F(AwaitRunEndTest, WaitsAsLongAsTheRunsWorkers) {
  chief_.config.mutable_cluster()->set_chief_wait_seconds(7);
  chief_.answers = {v1::RunStatus::TRAINING};
  EXPECT_TRUE(absl::IsUnavailable(AwaitRunEnd(options_)));
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(7) + absl::Milliseconds(250));
}

TEST_F(AwaitRunEndTest, AGivenLimitOfSilenceComesFirst) {
  chief_.config.mutable_cluster()->set_chief_wait_seconds(7);
  options_.max_silence = absl::Seconds(3);
  chief_.answers = {v1::RunStatus::TRAINING};
  EXPECT_TRUE(absl::IsUnavailable(AwaitRunEnd(options_)));
  EXPECT_EQ(clock_.elapsed(), absl::Seconds(3) + absl::Milliseconds(250));
}

TEST_F(AwaitRunEndTest, TheRecordSaysWhatAChiefThatHasGoneDoesNot) {
  MemoryFileSystem fs;
  ASSERT_TRUE(fs.CreateDirectory("run").ok());
  options_.fs = &fs;
  options_.logdir = "run";
  ASSERT_TRUE(WriteFileAtomically(&fs, "run/lockstep.textproto", "finished: true").ok());
  chief_.answers = {v1::RunStatus::TRAINING};
  EXPECT_TRUE(AwaitRunEnd(options_).ok());
  EXPECT_EQ(clock_.elapsed(), absl::Milliseconds(250));
  EXPECT_TRUE(AwaitRunEnd(options_).ok());
  EXPECT_EQ(clock_.elapsed(), absl::Milliseconds(250) + absl::Minutes(1)) << "a chief that continues it may come later";
}

// Imitates --master=file:FILE after the last chief has written the end mark to the file.
TEST_F(AwaitRunEndTest, TheAddressFileSpeaksForAGoneChief) {
  chief_.mark = EndOfRun(absl::StatusCode::kOutOfRange, "the run is over");
  EXPECT_TRUE(AwaitRunEnd(options_).ok());
  EXPECT_EQ(clock_.elapsed(), absl::Minutes(1)) << "a chief that continues it may come later";
  chief_.mark = EndOfRun(absl::StatusCode::kFailedPrecondition, "the run has failed: a loss");
  EXPECT_EQ(AwaitRunEnd(options_), chief_.mark);
}

TEST_F(AwaitRunEndTest, TheLimitEndsTheWaitWhateverTheChiefDoes) {
  options_.limit = absl::Milliseconds(1100);
  EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitRunEnd(options_)));
  EXPECT_EQ(clock_.elapsed(), absl::Milliseconds(1100));
  chief_.answers = {v1::RunStatus::TRAINING, v1::RunStatus::FINISHED};
  EXPECT_TRUE(AwaitRunEnd(options_).ok());
}

TEST_F(AwaitRunEndTest, AStopOfTheProcessEndsTheWait) {
  StopSignal stop;
  stop.Request();
  options_.stop = &stop;
  EXPECT_TRUE(absl::IsCancelled(AwaitRunEnd(options_)));
}

TEST_F(AwaitRunEndTest, RefusesAMasterThatLeadsNowhere) {
  options_.client = nullptr;
  options_.master = "";
  EXPECT_TRUE(absl::IsInvalidArgument(AwaitRunEnd(options_)));
  options_.master = "http://a:1";
  EXPECT_TRUE(absl::IsInvalidArgument(AwaitRunEnd(options_)));
}

}  // namespace
}  // namespace lockstep::train
