// Tests a chief and workers on one machine that exchange tensors through memory that both have mapped.
#include "lockstep/common/memory/shared_memory.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/tests/testing/proto_only_worker.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TestCluster::Options SharingCluster(int64_t slots) {
  TestCluster::Options options;
  options.config = SmallRunSpec(/*steps=*/40, slots);
  options.share_memory = true;
  return options;
}

TEST(SharedMemoryTest, TheBitsMatchTheOtherDataPaths) {
  TestCluster::Options local = SharingCluster(4);
  local.local = true;
  const auto reference = TrainAndDigest(local, 1);
  ASSERT_TRUE(reference.ok()) << reference.status();
  for (const int workers : {1, 2, 3, 6}) {
    EXPECT_EQ(TrainAndDigest(SharingCluster(4), workers).value_or("none"), *reference) << workers << " workers";
  }
}

// Returns the report of slot 0, with zeros for the update ops.
v1::SlotReport ReportOf(const ParameterLayout& layout) {
  v1::SlotReport report;
  for (const auto& op : layout.update_ops()) {
    report.add_update(std::string(static_cast<size_t>(layout.variables()[op.variable].elements) * sizeof(float), '\0'));
  }
  return report;
}

std::unique_ptr<StepChannel> OpenChannel(ProtoOnlyWorker* stranger, ChiefClient* client, bool share,
                                         std::function<bool()> idle = nullptr) {
  stranger->Open();
  ChiefClient::StepOptions options;
  options.session_id = stranger->session().session_id();
  options.generation = stranger->session().generation();
  EXPECT_TRUE(stranger->session().has_shared_memory());
  if (share) options.chief_memory = stranger->session().shared_memory();
  options.idle = std::move(idle);
  return client->OpenStepChannel(options, stranger->model()).value();
}

// Sends a contribution except for its end. All elements of its gradients are 0.25.
void Contribute(const ParameterLayout& layout, const v1::Token& token, StepChannel* channel) {
  std::vector<v1::SlotReport> reports(static_cast<size_t>(token.slot_count()), ReportOf(layout));
  for (size_t i = 0; i < reports.size(); ++i) reports[i].set_slot(token.first_slot() + static_cast<int64_t>(i));
  EXPECT_TRUE(channel->SendReports(reports).ok());
  for (size_t i = 0; i < layout.variables().size(); ++i) {
    const auto& variable = layout.variables()[i];
    if (!variable.spec.trainable()) continue;
    std::fill_n(channel->GradientBuffer(static_cast<int>(i)), variable.elements, 0.25f);
    EXPECT_TRUE(channel->SendGradient(static_cast<int>(i)).ok());
  }
}

// Number of bytes received and sent on a worker's Step stream until the worker has its token for step 1.
struct Carried {
  int64_t received = 0, sent = 0;
};

Carried CarriedInAStep(bool share, int64_t* model_bytes) {
  TestCluster::Options cluster_options = SharingCluster(1);
  cluster_options.config.mutable_model()->mutable_layer(0)->mutable_dense()->set_units(2000);
  TestCluster cluster(cluster_options);
  EXPECT_TRUE(cluster.StartChief().ok());
  ProtoOnlyWorker stranger(cluster.address(), "model", 1);
  const auto client = cluster.NewClient();
  const auto channel = OpenChannel(&stranger, client.get(), share);
  const ParameterLayout layout = ParameterLayout::Create(stranger.model()).value();
  *model_bytes = layout.flat_elements() * static_cast<int64_t>(sizeof(float));
  const auto first = channel->AwaitToken();
  EXPECT_TRUE(first.ok()) << first.status();
  Contribute(layout, first->token, channel.get());
  const auto next = channel->AwaitToken();
  EXPECT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->token.step(), 1);
  EXPECT_EQ(next->result, v1::CONTRIBUTION_ACCEPTED);
  const v1::RunStatus status = cluster.chief()->GetStatus();
  EXPECT_EQ(status.worker_size(), 1);
  const Carried carried = {status.worker(0).bytes_received(), status.worker(0).bytes_sent()};
  channel->Leave();
  return carried;
}

TEST(SharedMemoryTest, TensorsDoNotTravel) {
  int64_t model_bytes = 0;
  const Carried streamed = CarriedInAStep(/*share=*/false, &model_bytes);
  const Carried shared = CarriedInAStep(/*share=*/true, &model_bytes);
  EXPECT_GT(streamed.sent, model_bytes) << "two versions of the values";
  EXPECT_LT(shared.sent, 2000);
  EXPECT_LT(shared.received, streamed.received - model_bytes / 2) << "reports travel in both";
}

TEST(SharedMemoryTest, AWorkerWithoutATokenDoesItsIdleWork) {
  TestCluster::Options options = SharingCluster(/*slots=*/2);
  SimulatedClock clock;  // stands still, so that no slot is reissued because its worker is slow
  options.clock = &clock;
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  ProtoOnlyWorker busy(cluster.address(), "busy", 1), waiting(cluster.address(), "waiting", 2);
  const auto client = cluster.NewClient();
  const auto channel = OpenChannel(&busy, client.get(), /*share=*/true);
  const auto all = channel->AwaitToken();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->token.slot_count(), 2);
  int calls = 0;
  const auto work = [&] {
    if (++calls != 3) return calls < 3;
    // Waits until the chief has received the waiting worker's request, so that this worker gets its share of the next
    // step.
    while (cluster.chief()->GetStatus().worker(1).bytes_received() == 0) std::this_thread::yield();
    Contribute(ParameterLayout::Create(busy.model()).value(), all->token, channel.get());
    EXPECT_TRUE(channel->AwaitToken().ok());
    return true;
  };
  const auto next = OpenChannel(&waiting, client.get(), /*share=*/true, work)->AwaitToken();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->token.step(), 1);
  EXPECT_GE(calls, 3) << "as long as it has some";
}

// A foreign worker's stream that has sent its first frame.
class ProtoOnlyStream {
 public:
  ProtoOnlyStream(TestCluster* cluster, const v1::SharedMemoryHandle* gradient_memory)
      : stranger_(cluster->address(), "proto_only_worker", 1) {
    stranger_.Open();
    stream_ = stranger_.NewStream(&context_);
    v1::StepRequest ask = stranger_.AskForToken();
    if (gradient_memory != nullptr) *ask.mutable_gradient_memory() = *gradient_memory;
    EXPECT_TRUE(stream_->Write(ask));
    EXPECT_TRUE(stranger_.ReadToken(stream_.get(), &token_));
  }

  bool values_are_shared() const { return stranger_.reply().has_values_memory(); }
  // Returns a frame with reports and one piece at the given place in the shared memory.
  v1::StepRequest Piece(uint64_t offset, uint64_t bytes) {
    v1::StepRequest request = stranger_.NewRequest(token_);
    *request.add_report() = ReportOf(ParameterLayout::Create(stranger_.model()).value());
    v1::TensorPiece* const piece = request.add_gradient();
    piece->mutable_shared()->set_offset(offset);
    piece->mutable_shared()->set_bytes(bytes);
    return request;
  }
  // Sends the frame, and returns the status with which the stream ends.
  grpc::Status EndAfter(const v1::StepRequest& request) {
    stream_->Write(request);
    v1::Token token;
    EXPECT_FALSE(stranger_.ReadToken(stream_.get(), &token));
    return stream_->Finish();
  }

 private:
  ProtoOnlyWorker stranger_;
  grpc::ClientContext context_;
  std::unique_ptr<ProtoOnlyWorker::Stream> stream_;
  v1::Token token_;
};

TEST(SharedMemoryTest, MemoryOutOfReachIsAnsweredWithBytes) {
  TestCluster cluster(SharingCluster(1));
  ASSERT_TRUE(cluster.StartChief().ok());
  const auto memory = SharedMemory::Create(64).value();
  v1::SharedMemoryHandle handle = memory->handle();
  handle.set_machine("another");
  EXPECT_FALSE(ProtoOnlyStream(&cluster, &handle).values_are_shared());
  handle = memory->handle();
  handle.set_inode(handle.inode() + 1);
  EXPECT_FALSE(ProtoOnlyStream(&cluster, &handle).values_are_shared());
  EXPECT_TRUE(ProtoOnlyStream(&cluster, &memory->handle()).values_are_shared());
  EXPECT_FALSE(ProtoOnlyStream(&cluster, nullptr).values_are_shared());
}

TEST(SharedMemoryTest, AChiefThatDoesNotShareTakesNoMemory) {
  TestCluster::Options options = SharingCluster(1);
  options.share_memory = false;
  TestCluster cluster(options);
  ASSERT_TRUE(cluster.StartChief().ok());
  const auto memory = SharedMemory::Create(64).value();
  ProtoOnlyStream stream(&cluster, &memory->handle());
  EXPECT_FALSE(stream.values_are_shared());
  const grpc::Status status = stream.EndAfter(stream.Piece(0, 4));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("a gradient lies in shared memory; the stream has none"));
}

TEST(SharedMemoryTest, NamesAPieceOutsideTheMemory) {
  TestCluster cluster(SharingCluster(1));
  ASSERT_TRUE(cluster.StartChief().ok());
  const auto memory = SharedMemory::Create(64).value();
  const struct {
    uint64_t offset, bytes;
    std::string text;
  } cases[] = {{0, 68, "lies at byte 0 with 68 bytes in shared memory of 64"},
               {64, 4, "lies at byte 64 with 4 bytes"},
               {2, 4, "lies at byte 2 "},
               {68, 0, "lies at byte 68 "},
               {~uint64_t{3}, 8, "in shared memory of 64"},
               {4, ~uint64_t{0}, "in shared memory of 64"},
               {0, 0, "with 0 bytes has no whole number"},
               {0, 3, "with 3 bytes has no whole number"},
               {0, 64, "is not made of whole pieces of 65536 elements"}};
  for (const auto& test : cases) {
    ProtoOnlyStream stream(&cluster, &memory->handle());
    const grpc::Status status = stream.EndAfter(stream.Piece(test.offset, test.bytes));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(test.text));
  }
}

// A counter of the log lines that contain a given string. Counts as long as it exists.
class LogCounter : public google::LogSink {
 public:
  explicit LogCounter(std::string text) : text_(std::move(text)) { google::AddLogSink(this); }
  ~LogCounter() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&, const char* message,
            size_t length) override {
    if (absl::StrContains(absl::string_view(message, length), text_)) ++count_;
  }
  int count() const { return count_; }

 private:
  const std::string text_;
  std::atomic<int> count_{0};
};

TEST(SharedMemoryTest, ChecksAHandleOnceTheSessionIsKnown) {
  TestCluster cluster(SharingCluster(1));
  ASSERT_TRUE(cluster.StartChief().ok());
  ProtoOnlyWorker stranger(cluster.address(), "proto_only_worker", 1);
  ASSERT_NO_FATAL_FAILURE(stranger.Open());
  const auto memory = SharedMemory::Create(1000).value();
  v1::StepRequest request = stranger.AskForToken();
  *request.mutable_gradient_memory() = memory->handle();
  request.mutable_gradient_memory()->set_bytes(5);  // the memory has a different size
  for (const bool known : {false, true}) {
    const LogCounter refused("a worker's memory is not shared");
    if (!known) request.set_session_id(request.session_id() + 1);
    grpc::ClientContext context;
    const auto stream = stranger.NewStream(&context);
    ASSERT_TRUE(stream->Write(request));
    v1::Token token;
    EXPECT_EQ(stranger.ReadToken(stream.get(), &token), known);
    EXPECT_EQ(refused.count(), known ? 1 : 0);
    request.set_session_id(stranger.session().session_id());
    context.TryCancel();
  }
}

}  // namespace
}  // namespace lockstep
