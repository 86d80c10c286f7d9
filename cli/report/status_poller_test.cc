#include "cli/report/status_poller.h"

#include "absl/status/status.h"
#include "common/base/simulated_clock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Answers the step that it is asked for the n-th time; the second time it is away.
class CountingChief : public ChiefClient {
 public:
  absl::StatusOr<GetRunReply> GetRun() override { return absl::UnimplementedError(""); }
  absl::StatusOr<OpenSessionReply> OpenSession(const OpenSessionRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest&) override { return absl::UnimplementedError(""); }
  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions&, const ModelSpec&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<RunStatus> GetStatus() override {
    if (++calls_ == 2) return absl::UnavailableError("away");
    RunStatus status;
    status.set_global_step(calls_);
    return status;
  }

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
