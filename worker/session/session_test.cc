#include "lockstep/worker/session/session.h"

#include <xmmintrin.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/base/version.h"
#include "lockstep/common/client/testing/fake_chief_client.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/session/initial_values.h"
#include "lockstep/worker/session/testing/tiny_workload.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class WorkerSessionTest : public ::testing::Test {
 protected:
  WorkerSession::Options NewOptions() {
    WorkerSession::Options options;
    options.name = "worker-0@here";
    options.clock = &clock_;
    options.chief_address = "grpc://chief:2222";
    options.max_wait = absl::Seconds(10);
    options.draw_incarnation = [this] { return next_incarnation_++; };
    options.on_heartbeat = [this](const absl::StatusOr<v1::HeartbeatReply>& reply) {
      heartbeat_ = reply.status();
      return reply.ok();
    };
    return options;
  }

  SimulatedClock clock_;
  FakeChiefClient client_;
  uint64_t next_incarnation_ = 7;
  const Workload workload_ = TinyWorkload();
  absl::Status heartbeat_ = absl::UnknownError("none");
  WorkerSession session_{NewOptions(), &client_};
};

TEST_F(WorkerSessionTest, OpensAStreamWithWhatTheConfigurationSays) {
  client_.config.mutable_training()->set_startup_delay_steps(5);
  client_.config.mutable_training()->set_replicas_to_aggregate(4);
  client_.config.mutable_compression()->mutable_top_k()->set_fraction(0.25);
  ASSERT_TRUE(session_.Connect().ok());
  ASSERT_TRUE(session_.Open(workload_).ok());
  EXPECT_NE(session_.channel(), nullptr);
  const auto calls = client_.calls();
  ASSERT_EQ(calls.open_session.size(), 1u);
  EXPECT_EQ(calls.open_session[0].worker(), "worker-0@here");
  EXPECT_EQ(calls.open_session[0].incarnation(), 7);
  EXPECT_EQ(calls.open_session[0].model().variables(0).name(), "w");
  EXPECT_EQ(calls.streams[0].session_id, 1u);
  EXPECT_EQ(calls.streams[0].generation, 1);
  EXPECT_EQ(calls.streams[0].startup_delay_steps, 5);
  EXPECT_EQ(calls.streams[0].slots, 4);
  EXPECT_EQ(calls.streams[0].compression.top_k, 0.25);
}

TEST_F(WorkerSessionTest, IsNotOpenedWhereFloatsWouldHaveOtherBits) {
  ASSERT_TRUE(session_.Connect().ok());
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040);
  const absl::Status status = session_.Open(workload_);
  _mm_setcsr(mode);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(client_.calls().open_session.size(), 0u);
  const absl::Status end = session_.AwaitRetry(status);
  EXPECT_EQ(ExitCodeOf(end), kExitBadConfiguration) << end;
}

TEST_F(WorkerSessionTest, ItsChannelPreparesBatchesWhileItIsIdle) {
  class Batches : public BatchSource {
   public:
    const ExampleSpec& spec() const override { return spec_; }
    absl::StatusOr<Batch> Get(int64_t, int64_t) override { return absl::UnimplementedError("not used"); }
    bool PrepareIfBrief() override { return --hints_ >= 0; }

   private:
    const ExampleSpec spec_{};
    int hints_ = 2;
  };
  Workload workload = TinyWorkload();
  workload.batches = std::make_unique<Batches>();
  ASSERT_TRUE(session_.Connect().ok());
  ASSERT_TRUE(session_.Open(workload).ok());
  const std::function<bool()> idle = client_.calls().streams[0].idle;
  ASSERT_TRUE(idle);
  EXPECT_TRUE(idle());
  EXPECT_TRUE(idle());
  EXPECT_FALSE(idle());
}

TEST_F(WorkerSessionTest, SaysWhatItComputesWith) {
  WorkerSession::Options options = NewOptions();
  options.host = "host7";
  WorkerSession session(options, &client_);
  ASSERT_TRUE(session.Connect().ok());
  Workload workload = TinyWorkload();
  workload.framework.emplace().set_name("PyTorch");
  ASSERT_TRUE(session.Open(workload).ok());
  const v1::OpenSessionRequest request = client_.calls().open_session[0];
  EXPECT_EQ(request.host(), "host7");
  EXPECT_EQ(request.build().wire_version(), kWireVersion);
  EXPECT_EQ(request.build().arithmetic_version(), kArithmeticVersion);
  EXPECT_GT(request.model_part_size(), 0);
  EXPECT_EQ(request.framework().name(), "PyTorch");
  EXPECT_TRUE(request.canary_digest().empty()) << "nobody wants it";
}

TEST_F(WorkerSessionTest, ComputesTheCanaryOnceForAllItsSessions) {
  client_.wants_canary = true;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(session_.Connect().ok());
    ASSERT_TRUE(session_.Open(workload_).ok());
    session_.Close();
  }
  auto calls = client_.calls();
  ASSERT_EQ(calls.open_session.size(), 3u);
  EXPECT_TRUE(calls.open_session[0].canary_digest().empty());
  EXPECT_EQ(calls.open_session[1].canary_digest_size(), 1);
  EXPECT_EQ(calls.open_session[2].canary_digest(0), calls.open_session[1].canary_digest(0));
  EXPECT_EQ(calls.canary_values, 1);

  client_.config.mutable_training()->set_seed(5);  // another run
  ASSERT_TRUE(session_.Connect().ok());
  ASSERT_TRUE(session_.Open(workload_).ok());
  EXPECT_EQ(client_.calls().canary_values, 2);
}

TEST_F(WorkerSessionTest, BringsInitialValuesToNewRun) {
  std::map<std::string, Tensor> values;
  values["w"] = Tensor::FromValues<float>({}, {3.0f});
  WorkerSession::Options options = NewOptions();
  options.initial_values = std::make_shared<const InitialValues>(values);
  const std::weak_ptr<const InitialValues> held = options.initial_values;
  const std::string digest = options.initial_values->digest();
  WorkerSession session(std::move(options), &client_);
  client_.wants_initial_values = client_.wants_canary = true;
  client_.initial_values_digest = digest;
  client_.set_initial_values = {absl::UnavailableError("stopping"), absl::OkStatus()};
  ASSERT_TRUE(session.Connect().ok());
  EXPECT_TRUE(absl::IsUnavailable(session.Open(workload_)));
  EXPECT_EQ(session.initial_values_digest(), "");
  ASSERT_TRUE(session.Connect().ok());
  ASSERT_TRUE(session.Open(workload_).ok());
  const auto calls = client_.calls();
  ASSERT_EQ(calls.initial_values.size(), 2u);
  EXPECT_EQ(calls.initial_values[1].session_id(), 2u) << "the id in the reply";
  ASSERT_EQ(calls.open_session.size(), 4u) << "values are wanted, twice; the canary is wanted; with the canary";
  for (const v1::OpenSessionRequest& request : calls.open_session) EXPECT_EQ(request.initial_values_digest(), digest);
  EXPECT_EQ(session.initial_values_digest(), digest);
  EXPECT_TRUE(held.expired()) << "the memory is free";
}

TEST_F(WorkerSessionTest, BringsValuesAfterTheCanaryToo) {
  // A chief that is replaced, while the worker computes the canary, by one without the run.
  class ReplacedChief : public FakeChiefClient {
   public:
    absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) override {
      wants_initial_values = true;
      return FakeChiefClient::GetCanaryValues(request);
    }
  };
  ReplacedChief client;
  client.wants_canary = true;
  std::map<std::string, Tensor> values;
  values["w"] = Tensor::FromValues<float>({}, {3.0f});
  WorkerSession::Options options = NewOptions();
  options.initial_values = std::make_shared<const InitialValues>(values);
  WorkerSession session(std::move(options), &client);
  ASSERT_TRUE(session.Connect().ok());
  ASSERT_TRUE(session.Open(workload_).ok());
  const auto calls = client.calls();
  ASSERT_EQ(calls.open_session.size(), 3u) << "the canary is wanted; values are wanted; with both";
  EXPECT_EQ(calls.initial_values.size(), 1u);
  EXPECT_EQ(calls.streams[0].session_id, 3u);
}

TEST_F(WorkerSessionTest, LaterSessionsNameTheRunAndItsLastStep) {
  client_.wants_canary = true;
  client_.global_step = 5;
  const auto open = [this] {
    ASSERT_TRUE(session_.Connect().ok());
    ASSERT_TRUE(session_.Open(workload_).ok());
    session_.Close();
  };
  open();
  session_.OnStep(9);
  session_.OnStep(8);
  client_.global_step = 7;  // a restored chief
  open();
  open();
  const auto calls = client_.calls();
  ASSERT_EQ(calls.open_session.size(), 4u) << "the canary is not computed again";
  for (const int first : {0, 1}) EXPECT_EQ(calls.open_session[first].run_id(), "");
  EXPECT_EQ(calls.open_session[2].run_id(), "run");
  EXPECT_EQ(calls.open_session[2].last_step(), 9);
  EXPECT_EQ(calls.open_session[3].last_step(), 7);
}

TEST_F(WorkerSessionTest, TheCanaryIsKeptForAnotherAttempt) {
  client_.wants_canary = true;
  client_.open_session = {absl::OkStatus(), absl::UnavailableError("another worker declares its own"),
                          absl::OkStatus()};
  ASSERT_TRUE(session_.Connect().ok());
  EXPECT_TRUE(absl::IsUnavailable(session_.Open(workload_)));
  ASSERT_TRUE(session_.Open(workload_).ok());
  EXPECT_EQ(client_.calls().canary_values, 1);
}

TEST_F(WorkerSessionTest, ACanaryThatIsRefusedEndsTheAttempt) {
  client_.wants_canary = true;
  client_.open_session = {absl::OkStatus(), absl::FailedPreconditionError("other bits")};
  ASSERT_TRUE(session_.Connect().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(session_.Open(workload_)));
  EXPECT_EQ(session_.channel(), nullptr);
}

TEST_F(WorkerSessionTest, ItsOwnStartupDelayGoesBeforeTheConfigured) {
  client_.config.mutable_training()->set_startup_delay_steps(5);
  WorkerSession::Options options = NewOptions();
  options.startup_delay_steps = 3;
  WorkerSession session(options, &client_);
  ASSERT_TRUE(session.Connect().ok());
  ASSERT_TRUE(session.Open(workload_).ok());
  EXPECT_EQ(client_.calls().streams[0].startup_delay_steps, 3);
}

TEST_F(WorkerSessionTest, ReopensUnderTheSameIncarnation) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(session_.Connect().ok());
    ASSERT_TRUE(session_.Open(workload_).ok());
    session_.Close();
  }
  EXPECT_EQ(session_.channel(), nullptr);
  const auto calls = client_.calls();
  ASSERT_EQ(calls.open_session.size(), 2u);
  EXPECT_EQ(calls.open_session[0].incarnation(), calls.open_session[1].incarnation());
  WorkerSession other(NewOptions(), &client_);
  ASSERT_TRUE(other.Connect().ok());
  ASSERT_TRUE(other.Open(workload_).ok());
  EXPECT_NE(client_.calls().open_session[2].incarnation(), calls.open_session[0].incarnation());
}

TEST_F(WorkerSessionTest, HeartbeatsLastAsLongAsTheSession) {
  ASSERT_TRUE(session_.Connect().ok());
  ASSERT_TRUE(session_.Open(workload_).ok());
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(1));  // a third of the lease
  clock_.AwaitWaiters(1);
  EXPECT_EQ(client_.calls().heartbeat, 1);
  EXPECT_TRUE(heartbeat_.ok());
  session_.Close();
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(client_.calls().heartbeat, 1);
}

TEST_F(WorkerSessionTest, GivesUpWhatNoOtherSessionHelps) {
  ASSERT_TRUE(session_.Connect().ok());
  const absl::Status wrong = absl::FailedPreconditionError("the worker's model is not the run's");
  EXPECT_EQ(session_.AwaitRetry(wrong), wrong);
}

TEST_F(WorkerSessionTest, WaitsBeforeItTriesAgain) {
  ASSERT_TRUE(session_.Connect().ok());
  absl::Status status = absl::UnknownError("");
  EXPECT_TRUE(session_.AwaitRetry(absl::AbortedError("variables were set")).ok()) << "at once: the chief has answered";
  std::thread waiter([&] { status = session_.AwaitRetry(absl::UnavailableError("gone")); });
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(2));
  waiter.join();
  EXPECT_TRUE(status.ok());
}

TEST_F(WorkerSessionTest, GivesUpAChiefThatStaysAway) {
  client_.get_run = {absl::UnavailableError("connection refused")};
  EXPECT_FALSE(session_.Connect().ok());
  clock_.Advance(absl::Seconds(11));
  const absl::Status status = session_.AwaitRetry(absl::UnavailableError("connection refused"));
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the chief at grpc://chief:2222 has been unreachable for 10s"));
}

TEST_F(WorkerSessionTest, AStopEndsWhatBlocksAndLeavesAnOpenSession) {
  ASSERT_TRUE(session_.Connect().ok());
  ASSERT_TRUE(session_.Open(workload_).ok());
  session_.RequestStop();
  EXPECT_TRUE(session_.stop_requested());
  EXPECT_TRUE(session_.AwaitRetry(absl::AbortedError("restarted")).ok()) << "at once";
  EXPECT_TRUE(absl::IsCancelled(session_.Connect().status()));
  EXPECT_TRUE(absl::IsCancelled(session_.Open(workload_)));
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(1));
  clock_.AwaitWaiters(1);
  EXPECT_EQ(client_.calls().heartbeat, 1) << "the session lasts until what it has begun to send is sent";
  EXPECT_EQ(client_.calls().cancels, 0);
}

}  // namespace
}  // namespace lockstep
