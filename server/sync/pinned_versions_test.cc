// Tests that hanging workers keep only a few versions of the values alive, no matter how many hang and for how long.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/server/sync/testing/no_failures.h"

namespace lockstep {
namespace {

constexpr int64_t kGeneration = 3;
constexpr uint64_t kGoodSession = 1000;
constexpr int64_t kOldVersions = 2;

// A run with R = 1, one good worker and, in each step, a backup worker that hangs while it holds the step's values.
class PinnedVersionsTest : public testing::TestWithParam<ValuePath> {
 protected:
  struct Hung {
    std::unique_ptr<FrameWorker> worker;
    v1::Token token;
    // The unread reply, which gRPC would keep in memory.
    StepReplyFrame unread;
  };

  void Start(int64_t old_version_bytes) {
    config::v1::OptimizerConfig optimizer;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 }", &optimizer));
    const bool share = GetParam() == ValuePath::kShared;
    store_ = VariableStore::Create(FrameModel(), optimizer, {}, /*replicas_to_aggregate=*/1, share).value();
    store_->Initialize(1);
    SyncReplicas::Options options;
    options.clock = &clock_;
    options.machine.generation = kGeneration;
    options.machine.slots = 1;
    options.machine.total_steps = 100;
    options.old_version_bytes = old_version_bytes;
    options.events = &events_;
    sync_ = std::make_unique<SyncReplicas>(std::move(options), std::make_unique<StepShard>(store_.get(), /*slots=*/1),
                                           FramePolicy(/*slots=*/1));
    good_ = Connect(kGoodSession);
    ASSERT_TRUE(good_->Ask().ok());
  }

  std::unique_ptr<FrameWorker> Connect(uint64_t session) {
    return std::make_unique<FrameWorker>(session, kGeneration, [this, session](std::shared_ptr<StepListener> listener) {
      return sync_->Connect(session, absl::StrCat("worker-", session), GetParam(), std::move(listener));
    });
  }

  // Connects a worker that gets the token of the current step together with its values, and is never heard from again.
  void Hang(uint64_t session) {
    Hung hung;
    hung.worker = Connect(session);
    StepFrame ask = hung.worker->NewFrame(v1::Token());
    ask.end = true;
    ASSERT_TRUE(hung.worker->Send(ask).ok());
    ASSERT_TRUE(hung.worker->connection()->NextReply(&hung.unread));
    ASSERT_TRUE(hung.unread.token);
    hung.token = *hung.unread.token;
    hung_.push_back(std::move(hung));
  }

  // Lets the good worker complete a step. Then drops the replies of streams that have ended, as gRPC does.
  void MakeStep() {
    versions_.push_back(store_->published());
    ASSERT_TRUE(good_->token());
    ASSERT_TRUE(good_->Push().ok());
    for (Hung& hung : hung_) {
      if (!hung.worker->closed().ok()) hung.unread = StepReplyFrame();
    }
  }

  static int64_t ModelBytes() {
    return ParameterLayout::Create(FrameModel())->flat_elements() * static_cast<int64_t>(sizeof(float));
  }
  int64_t OldVersions() const {
    int64_t alive = 0;
    for (const auto& version : versions_) alive += version.expired() ? 0 : 1;
    return alive;
  }
  std::string Values() const { return std::string(store_->values()->data(), store_->values()->size()); }

  SimulatedClock clock_;
  NoFailures events_;
  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<SyncReplicas> sync_;
  std::unique_ptr<FrameWorker> good_;
  std::vector<Hung> hung_;
  // The versions that later steps have replaced.
  std::vector<std::weak_ptr<const PublishedValues>> versions_;
};

TEST_P(PinnedVersionsTest, WorkersThatHangKeepFewVersions) {
  constexpr int64_t kSteps = 20;
  ASSERT_NO_FATAL_FAILURE(Start(/*old_version_bytes=*/0));
  std::set<const void*> memory;
  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_NO_FATAL_FAILURE(Hang(static_cast<uint64_t>(step)));
    memory.insert(store_->values()->data());
    ASSERT_NO_FATAL_FAILURE(MakeStep());
    EXPECT_LE(OldVersions(), kOldVersions) << "after step " << step;
    for (int64_t i = 0; i <= step; ++i) {
      const FrameWorker& worker = *hung_[static_cast<size_t>(i)].worker;
      const bool kept = step - i < kOldVersions;
      EXPECT_EQ(worker.closed().ok(), kept) << i << " after step " << step;
      EXPECT_EQ(absl::IsAborted(worker.closed()), !kept) << worker.closed();
    }
  }
  EXPECT_TRUE(good_->closed().ok());
  // The current and the next version count too. The memory of a reply is returned only after the next step has begun.
  EXPECT_LE(memory.size(), static_cast<size_t>(kOldVersions) + 3);
  const std::string disturbed = Values();
  hung_.clear();
  good_.reset();
  ASSERT_NO_FATAL_FAILURE(Start(/*old_version_bytes=*/0));
  for (int64_t step = 0; step < kSteps; ++step) ASSERT_NO_FATAL_FAILURE(MakeStep());
  EXPECT_TRUE(Values() == disturbed) << "the bits are those of a run where nobody hangs";
}

TEST_P(PinnedVersionsTest, AWorkerThatWakesUpLateComesBackWithANewStream) {
  ASSERT_NO_FATAL_FAILURE(Start(/*old_version_bytes=*/0));
  for (uint64_t session = 0; session < 5; ++session) {
    ASSERT_NO_FATAL_FAILURE(Hang(session));
    ASSERT_NO_FATAL_FAILURE(MakeStep());
  }
  EXPECT_TRUE(absl::IsAborted(hung_[0].worker->Push(hung_[0].token))) << "what it has computed is not taken";
  EXPECT_TRUE(hung_[4].worker->Push(hung_[4].token).ok()) << "the stream of this one is open";
  ASSERT_EQ(hung_[4].worker->results().size(), 1u);
  EXPECT_EQ(hung_[4].worker->results()[0], v1::CONTRIBUTION_DUPLICATE);
  hung_[4].worker->connection()->Close();
  hung_[0].worker = Connect(0);
  ASSERT_TRUE(hung_[0].worker->Ask().ok());
  ASSERT_TRUE(hung_[0].worker->token());
  EXPECT_EQ(hung_[0].worker->token()->step(), 5);
  ASSERT_TRUE(hung_[0].worker->Push().ok());
  EXPECT_EQ(sync_->step(), 6);
}

TEST_P(PinnedVersionsTest, SmallVersionsAreKeptLonger) {
  ASSERT_NO_FATAL_FAILURE(Start(10 * ModelBytes()));
  for (uint64_t session = 0; session < 12; ++session) {
    ASSERT_NO_FATAL_FAILURE(Hang(session));
    ASSERT_NO_FATAL_FAILURE(MakeStep());
  }
  EXPECT_EQ(OldVersions(), 10);
  for (size_t i = 0; i < hung_.size(); ++i) EXPECT_EQ(hung_[i].worker->closed().ok(), i >= 2) << i;
}

// The ways in which the stream of a worker that does not read ends.
enum class Ends { kReplaced, kLeft, kRefused };

class EndedStreamsTest : public PinnedVersionsTest {
 protected:
  void End(Ends how, Hung* hung) {
    if (how == Ends::kReplaced) return;  // the session's next stream replaces it
    if (how == Ends::kLeft) {
      ASSERT_TRUE(hung->worker->Leave().ok());
    } else {
      ASSERT_FALSE(hung->worker->Send(StepFrame()).ok());
      hung->worker->connection()->Close();
    }
  }
  // Drops the unread replies of cancelled calls, as gRPC does.
  void LetGoOfCancelled() {
    for (Hung& hung : hung_) {
      if (hung.worker->cancelled()) hung.unread = StepReplyFrame();
    }
  }
};

TEST_P(EndedStreamsTest, KeepFewVersionsWhateverTheirNumber) {
  for (const Ends how : {Ends::kReplaced, Ends::kLeft, Ends::kRefused}) {
    SCOPED_TRACE(static_cast<int>(how));
    hung_.clear();
    good_.reset();
    versions_.clear();
    ASSERT_NO_FATAL_FAILURE(Start(/*old_version_bytes=*/0));
    for (int64_t step = 0; step < 25; ++step) {
      ASSERT_NO_FATAL_FAILURE(Hang(/*session=*/1));
      ASSERT_NO_FATAL_FAILURE(End(how, &hung_.back()));
      versions_.push_back(store_->published());
      ASSERT_TRUE(good_->Push().ok());
      LetGoOfCancelled();
      EXPECT_LE(OldVersions(), kOldVersions) << "after step " << step;
    }
    EXPECT_TRUE(good_->closed().ok());
  }
}

TEST_P(EndedStreamsTest, KeepFewVersionsThatAreSetAtOneStep) {
  ASSERT_NO_FATAL_FAILURE(Start(/*old_version_bytes=*/0));
  good_.reset();
  for (int64_t i = 0; i < 25; ++i) {
    ASSERT_NO_FATAL_FAILURE(Hang(/*session=*/1));
    ASSERT_NO_FATAL_FAILURE(End(Ends::kLeft, &hung_.back()));
    sync_->HoldForChange();
    ASSERT_TRUE(sync_->AwaitHeld());
    versions_.push_back(store_->published());
    ASSERT_TRUE(sync_->Assign({{"w", Tensor::FromValues<float>({3}, {10, 20, 30})}}).ok());
    sync_->ReleaseAfterChange();
    LetGoOfCancelled();
    EXPECT_LE(OldVersions(), kOldVersions) << "after assignment " << i;
  }
  EXPECT_EQ(sync_->step(), 0);
}

INSTANTIATE_TEST_SUITE_P(Streamed, EndedStreamsTest, testing::Values(ValuePath::kStreamed));

INSTANTIATE_TEST_SUITE_P(Paths, PinnedVersionsTest, testing::Values(ValuePath::kStreamed, ValuePath::kShared),
                         [](const testing::TestParamInfo<ValuePath>& info) {
                           return info.param == ValuePath::kShared ? "Shared" : "Streamed";
                         });

}  // namespace
}  // namespace lockstep
