#include "lockstep/cli/report/status_poller.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep {
namespace {

// Answers the n-th call with step n, except that the second call fails.
class CountingChief : public ChiefClient {
 public:
  absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override { return absl::UnimplementedError(""); }
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions&, const v1::ModelSpec&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::RunStatus> GetStatus() override {
    if (++calls_ == 2) return absl::UnavailableError("away");
    v1::RunStatus status;
    status.set_global_step(calls_);
    return status;
  }
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest&) override {
    return absl::UnimplementedError("");
  }
  void CancelConnecting() override {}

 private:
  int64_t calls_ = 0;
};

TEST(StatusPollerTest, HandsOutEachAnswerOnce) {
  SimulatedClock clock;
  StatusPoller poller(std::make_unique<CountingChief>(), &clock, absl::ZeroDuration());
  EXPECT_FALSE(poller.Take().has_value());
  poller.RunOnce();
  EXPECT_EQ(poller.Take()->global_step(), 1);
  EXPECT_FALSE(poller.Take().has_value());
  poller.RunOnce();
  EXPECT_FALSE(poller.Take().has_value()) << "the chief is away";
  poller.RunOnce();
  EXPECT_EQ(poller.Take()->global_step(), 3);
}

TEST(StatusPollerTest, AsksOnceEveryPeriod) {
  SimulatedClock clock;
  StatusPoller poller(std::make_unique<CountingChief>(), &clock, absl::Seconds(1));
  for (const int64_t step : {1, 0, 3}) {
    clock.AwaitWaiters(1);
    const auto status = poller.Take();
    EXPECT_EQ(status.has_value() ? status->global_step() : 0, step);
    clock.Advance(absl::Seconds(1));
  }
}

}  // namespace
}  // namespace lockstep
