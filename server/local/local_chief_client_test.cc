#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/chief/training.h"
#include "lockstep/server/local/local_connector.h"
#include "lockstep/server/sync/sync_replicas.h"

namespace lockstep {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

class LocalChiefClientTest : public ::testing::Test {
 protected:
  void Start(const std::string& config) {
    Chief::Options options;
    options.fs = &fs_;
    options.clock = Clock::Real();
    options.config = Parse<config::v1::RunSpec>(
        "optimizer { sgd {} learning_rate { initial: 1 } } "
        "training { steps: 2 replicas_to_aggregate: 1 seed: 7 } input { batch_size: 1 } " +
        config);
    ApplyDefaults(&options.config);
    compression_ = CompressionOf(options.config.compression());
    options.housekeeping_period = absl::ZeroDuration();
    auto chief = Chief::Create(std::move(options));
    ASSERT_TRUE(chief.ok()) << chief.status();
    chief_ = *std::move(chief);
    client_ = LocalConnector(chief_.get()).Connect(MasterAddress()).value();
  }
  // Opens the stream of a worker with one variable, w[2].
  std::unique_ptr<StepChannel> Open(uint64_t incarnation = 1, std::function<bool()> idle = nullptr) {
    v1::OpenSessionRequest request;
    request.set_worker("worker");
    request.set_incarnation(incarnation);
    *request.mutable_model() = model_;
    CompleteDeclaration(&request);
    const auto session = client_->OpenSession(request);
    EXPECT_TRUE(session.ok()) << session.status();
    ChiefClient::StepOptions options;
    options.session_id = session->session_id();
    options.generation = session->generation();
    options.compression = compression_;
    options.idle = std::move(idle);
    auto channel = client_->OpenStepChannel(options, model_);
    EXPECT_TRUE(channel.ok()) << channel.status();
    return *std::move(channel);
  }
  static absl::Status Contribute(float first, float second, StepChannel* channel) {
    v1::SlotReport report;
    report.set_loss(1);
    const absl::Status status = channel->SendReports({report});
    if (!status.ok()) return status;
    channel->GradientBuffer(0)[0] = first;
    channel->GradientBuffer(0)[1] = second;
    return channel->SendGradient(0);
  }

  MemoryFileSystem fs_;
  const v1::ModelSpec model_ = Parse<v1::ModelSpec>(R"pb(variables {
                                                           name: "w"
                                                           dtype: DT_FLOAT
                                                           shape: 2
                                                           trainable: true
                                                           initializer { zeros {} }
                                                         })pb");
  Compression compression_;
  std::unique_ptr<Chief> chief_;
  std::unique_ptr<ChiefClient> client_;
};

TEST_F(LocalChiefClientTest, ARunIsTrainedWithoutASocket) {
  Start("");
  const auto channel = Open();
  auto assignment = channel->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->token.step(), 0);
  EXPECT_EQ(assignment->values[0][0], 0);
  ASSERT_TRUE(Contribute(1, 2, channel.get()).ok());
  assignment = channel->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->token.step(), 1);
  EXPECT_EQ(assignment->result, v1::CONTRIBUTION_ACCEPTED);
  EXPECT_EQ(assignment->values[0][0], -1);
  EXPECT_EQ(assignment->values[0][1], -2);
  ASSERT_TRUE(Contribute(1, 2, channel.get()).ok());
  std::thread ending([this] { EXPECT_TRUE(chief_->ends()->Wait().ok()); });
  assignment = channel->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_TRUE(assignment->finished);
  channel->Leave();
  ending.join();
  EXPECT_FALSE(channel->AwaitToken().ok());
}

TEST_F(LocalChiefClientTest, DecodesValuesButNotGradients) {
  Start("compression { gradients: BFLOAT16 values: BFLOAT16 }");
  const auto channel = Open();
  ASSERT_TRUE(channel->AwaitToken().ok());
  ASSERT_TRUE(Contribute(1.5f, 257, channel.get()).ok());
  const auto assignment = channel->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->values[0][0], -1.5f);
  EXPECT_EQ(assignment->values[0][1], -256) << "to even";
}

TEST_F(LocalChiefClientTest, TheEstimatesOfATokenAreHandedOver) {
  Start("compression { top_k { fraction: 1 } }");
  const auto channel = Open();
  const auto assignment = channel->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  ASSERT_EQ(assignment->estimates.size(), 1u);
  EXPECT_EQ(assignment->estimates[0][0], 0);
}

TEST_F(LocalChiefClientTest, AnotherThreadCancelsTheWaitForAToken) {
  Start("");
  const auto first = Open(1), second = Open(2);
  ASSERT_TRUE(first->AwaitToken().ok());
  // The only slot is taken. The second worker may get a backup copy of it, and then waits.
  absl::Status waited;
  std::thread waiter([&] {
    auto assignment = second->AwaitToken();
    if (assignment.ok()) assignment = second->AwaitToken();
    waited = assignment.status();
  });
  second->CancelWait();
  waiter.join();
  EXPECT_FALSE(waited.ok());
  second->Leave();
}

TEST_F(LocalChiefClientTest, AWorkerWithoutATokenDoesItsIdleWork) {
  Start("");
  const auto let_through = [this](int64_t step) {
    chief_->training()->sync()->SetLimit(SyncReplicas::Limiter::kFollower, step);
  };
  int calls = 0;
  const auto channel = Open(1, [&] {
    if (++calls == 3) let_through(1);
    return calls <= 3;
  });
  let_through(0);
  ASSERT_TRUE(channel->AwaitToken().ok());
  EXPECT_EQ(calls, 0) << "there is a token immediately";
  ASSERT_TRUE(Contribute(1, 2, channel.get()).ok());
  const auto assignment = channel->AwaitToken();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->token.step(), 1);
  EXPECT_EQ(calls, 3) << "as long as there is no token";
}

TEST_F(LocalChiefClientTest, CancelledAndAbandonedStreamsEnd) {
  Start("");
  const auto first = Open(1);
  ASSERT_TRUE(first->AwaitToken().ok());
  const auto second = Open(2);
  second->Cancel();
  absl::Status status;
  for (int i = 0; status.ok() && i < 3; ++i) status = second->AwaitToken().status();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(second->AwaitToken().status(), status) << "it stays broken";
  first->Leave();
  EXPECT_EQ(chief_->GetStatus().worker_size(), 0);
}

TEST_F(LocalChiefClientTest, ARefusedFrameBreaksTheStream) {
  Start("");
  const auto channel = Open();
  ASSERT_TRUE(channel->AwaitToken().ok());
  const absl::Status status = channel->SendGradient(0);  // before its report
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(channel->SendGradient(0), status);
  EXPECT_EQ(channel->AwaitToken().status(), status);
}

TEST_F(LocalChiefClientTest, AStoppedClientOpensNoSession) {
  Start("");
  client_->CancelConnecting();
  EXPECT_TRUE(absl::IsCancelled(client_->GetRunSpec().status()));
  EXPECT_TRUE(absl::IsCancelled(client_->OpenSession({}).status()));
}

TEST_F(LocalChiefClientTest, OnlyTheEmptyMasterIsInThisProcess) {
  Start("");
  LocalConnector connector(chief_.get());
  EXPECT_TRUE(absl::IsInvalidArgument(connector.Connect(ParseMasterAddress("grpc://a:1").value()).status()));
}

}  // namespace
}  // namespace lockstep
