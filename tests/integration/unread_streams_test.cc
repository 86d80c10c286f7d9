// Workers whose streams end, one after another, while they do not read what the chief sends: what the chief keeps for
// all of them together stays bounded, and the run continues.
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/tests/testing/http2_peer.h"
#include "lockstep/tests/testing/process_memory.h"
#include "lockstep/tests/testing/proto_only_worker.h"
#include "lockstep/tests/testing/test_cluster.h"

namespace lockstep {
namespace {

constexpr int kStreams = 25;
// Of one version of the values: much more than gRPC's window.
constexpr int64_t kVersionBytes = 16 << 20;
// More than streams that are not read may keep, training needs, and is being cancelled; fewer than kStreams.
constexpr int64_t kMostVersions = 15;
constexpr char kName[] = "stranger";

// A chief whose good worker waits in the middle of each step until the test lets it continue.
class UnreadStreamsTest : public testing::Test {
 protected:
  void Start(absl::Duration silence_limit) {
    TestCluster::Options options;
    options.config = SmallRunSpec(/*steps=*/1000000, /*slots=*/1);
    // 12 weights for each unit, 4 of the normalization and its averages, and 4 of the next layer.
    options.config.mutable_model()->mutable_layer(0)->mutable_dense()->set_units(
        static_cast<int32_t>(kVersionBytes / static_cast<int64_t>(sizeof(float)) / 20));
    options.config.mutable_optimizer()->mutable_sgd();
    options.server.silence_limit = silence_limit;
    options.before_batch = [this](int64_t step) { BeforeBatch(step); };
    cluster_ = std::make_unique<TestCluster>(options);
    ASSERT_TRUE(cluster_->StartChief().ok());
    cluster_->StartWorker();
    stranger_ = std::make_unique<ProtoOnlyWorker>(cluster_->address(), kName, 4711);
    ASSERT_NO_FATAL_FAILURE(stranger_->Open());
    Train(2);
  }
  ~UnreadStreamsTest() override {
    MutexLock lock(&mutex_);
    allowed_ = std::numeric_limits<int64_t>::max();
    changed_.SignalAll();
  }
  // Lets the good worker make some steps.
  void Train(int64_t steps) {
    MutexLock lock(&mutex_);
    allowed_ += steps;
    changed_.SignalAll();
    while (reached_ < allowed_) changed_.Wait(&mutex_);
  }
  // Blocks until the chief sends values on the stranger's stream.
  void AwaitValues() const {
    while (true) {
      const v1::RunStatus status = cluster_->chief()->GetStatus();
      for (const v1::WorkerStatus& worker : status.worker()) {
        if (worker.name() == kName && worker.bytes_sent() > 0) return;
      }
      std::this_thread::yield();
    }
  }
  void AwaitNoStream() const {
    while (cluster_->chief()->GetStatus().worker_size() > 1) std::this_thread::yield();
  }
  v1::StepRequest Leave() const {
    v1::StepRequest leave = stranger_->NewRequest(v1::Token());
    leave.set_leave(true);
    return leave;
  }

  // Opens streams that end by `frame`, or because the next one replaces them if it is null.
  void ExpectBounded(const v1::StepRequest* frame) {
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<ProtoOnlyWorker::Stream>> streams;
    const MemoryGrowth memory;
    for (int i = 0; i < kStreams; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      streams.push_back(stranger_->NewStream(contexts.back().get()));
      ASSERT_TRUE(streams.back()->Write(stranger_->AskForToken()));
      AwaitValues();
      if (frame != nullptr) {
        ASSERT_TRUE(streams.back()->Write(*frame));
        AwaitNoStream();
      }
      Train(1);
    }
    EXPECT_LT(memory.peak(), kMostVersions * kVersionBytes);
    Train(2);
    for (const auto& context : contexts) context->TryCancel();
  }

  void BeforeBatch(int64_t step) {
    MutexLock lock(&mutex_);
    reached_ = step;
    changed_.SignalAll();
    while (reached_ >= allowed_) changed_.Wait(&mutex_);
  }

  Mutex mutex_;
  CondVar changed_;
  int64_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;   // the good worker does not compute this step, nor a later one
  int64_t reached_ ABSL_GUARDED_BY(mutex_) = -1;  // the step that it is at
  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<ProtoOnlyWorker> stranger_;
};

TEST_F(UnreadStreamsTest, ReplacedOnesKeepFewVersions) {
  ASSERT_NO_FATAL_FAILURE(Start(absl::Seconds(10)));
  ExpectBounded(nullptr);
}

TEST_F(UnreadStreamsTest, OnesThatLeaveKeepFewVersions) {
  ASSERT_NO_FATAL_FAILURE(Start(absl::Seconds(10)));
  const v1::StepRequest leave = Leave();
  ExpectBounded(&leave);
}

TEST_F(UnreadStreamsTest, OnesThatBreakARuleKeepFewVersions) {
  ASSERT_NO_FATAL_FAILURE(Start(absl::Seconds(10)));
  v1::StepRequest wrong = stranger_->AskForToken();
  wrong.set_session_id(wrong.session_id() + 1);
  ExpectBounded(&wrong);
}

TEST_F(UnreadStreamsTest, OneThatHasLeftIsCancelled) {
  ASSERT_NO_FATAL_FAILURE(Start(absl::Seconds(2)));
  Http2Peer peer(cluster_->address());
  peer.Begin(1, "/lockstep.v1.ChiefService/Step");
  peer.SendMessage(1, stranger_->AskForToken().SerializeAsString());
  AwaitValues();
  peer.SendMessage(1, Leave().SerializeAsString());
  // The server's window is used up; it ends the call all the same.
  auto frame = peer.Read();
  while (frame && frame->type != Http2Peer::kResetStream) frame = peer.Read();
  ASSERT_TRUE(frame) << "the connection ended first";
  EXPECT_EQ(frame->stream, 1u);
}

}  // namespace
}  // namespace lockstep
