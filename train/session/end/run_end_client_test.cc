#include "lockstep/train/session/end/run_end_client.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/client/testing/fake_chief_client.h"
#include "lockstep/common/cluster/end_of_run.h"
#include "lockstep/common/io/testing/memory_file_system.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

class RunEndClientTest : public ::testing::Test {
 protected:
  RunEndClientTest() {
    auto chief = std::make_unique<FakeChiefClient>();
    chief_ = chief.get();
    RunEndClient::Options options;
    options.fs = &fs_;
    options.clock = &clock_;
    options.logdir = "run";
    client_ = std::make_unique<RunEndClient>(std::move(options), std::move(chief));
  }
  void Record(bool finished) {
    v1::RunRecord record;
    record.set_finished(finished);
    ASSERT_TRUE(fs_.CreateDirectory("run").ok());
    ASSERT_TRUE(WriteRunRecord(&fs_, "run", record).ok());
  }
  bool SaysThatItIsOver() {
    const absl::Status status = client_->GetRunSpec().status();
    EXPECT_FALSE(status.ok());
    return IsEndOfRun(status);
  }

  SimulatedClock clock_;
  MemoryFileSystem fs_;
  FakeChiefClient* chief_;
  std::unique_ptr<RunEndClient> client_;
};

TEST_F(RunEndClientTest, FindsTheEndInTheRecordOfAChiefThatHasGone) {
  Record(/*finished=*/true);
  chief_->get_run = {absl::OkStatus(), absl::UnavailableError("connection refused")};
  ASSERT_TRUE(client_->GetRunSpec().ok()) << "a chief that answers knows better";
  ASSERT_TRUE(client_->OpenSession(v1::OpenSessionRequest()).ok());
  const absl::Status over = client_->GetRunSpec().status();
  EXPECT_TRUE(IsEndOfRun(over)) << over;
  EXPECT_TRUE(absl::IsOutOfRange(over)) << over;
  EXPECT_THAT(std::string(over.message()), HasSubstr("run"));
}

TEST_F(RunEndClientTest, LooksOnForAChiefWhoseRunIsNotOver) {
  chief_->get_run = {absl::OkStatus(), absl::DeadlineExceededError("no answer")};
  ASSERT_TRUE(client_->GetRunSpec().ok());
  ASSERT_TRUE(client_->OpenSession(v1::OpenSessionRequest()).ok());
  EXPECT_FALSE(SaysThatItIsOver()) << "there is no record";
  Record(/*finished=*/false);
  EXPECT_FALSE(SaysThatItIsOver());
  Record(/*finished=*/true);
  EXPECT_TRUE(SaysThatItIsOver());
}

TEST_F(RunEndClientTest, BelievesAnEndAfterAMinuteOfAbsence) {
  Record(/*finished=*/true);
  const absl::Status gone = absl::UnavailableError("connection refused");
  chief_->get_run = {gone, gone, absl::FailedPreconditionError("another program"), gone};
  EXPECT_FALSE(SaysThatItIsOver());
  clock_.Advance(RunEndClient::kGrace - absl::Milliseconds(1));
  EXPECT_FALSE(SaysThatItIsOver());
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(SaysThatItIsOver()) << "somebody answers";
  EXPECT_FALSE(SaysThatItIsOver()) << "the minute begins anew";
  clock_.Advance(RunEndClient::kGrace);
  EXPECT_TRUE(SaysThatItIsOver());
}

}  // namespace
}  // namespace lockstep::train
