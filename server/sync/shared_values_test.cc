// Tests the values that a worker sharing memory with the chief reads while it computes (ValuePath::kShared).
#include <memory>
#include <utility>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/server/sync/testing/frame_worker.h"
#include "lockstep/server/sync/testing/no_failures.h"

namespace lockstep {
namespace {

constexpr int64_t kGeneration = 7;
constexpr absl::Duration kLease = absl::Seconds(5);

class SharedValuesTest : public testing::Test {
 protected:
  void Start(int64_t slots) {
    config::v1::OptimizerConfig optimizer;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("sgd {} learning_rate { initial: 1 }", &optimizer));
    store_ = VariableStore::Create(FrameModel(), optimizer, {}, slots, /*share_values=*/true).value();
    store_->Initialize(1);
    SyncReplicas::Options options;
    options.clock = &clock_;
    options.machine.generation = kGeneration;
    options.machine.slots = slots;
    options.machine.total_steps = 100;
    options.machine.lease = kLease;
    options.events = &events_;
    sync_ = std::make_unique<SyncReplicas>(std::move(options), std::make_unique<StepShard>(store_.get(), slots),
                                           FramePolicy(slots, kLease));
  }

  std::unique_ptr<FrameWorker> Connect(uint64_t session, ValuePath path = ValuePath::kShared) {
    return std::make_unique<FrameWorker>(session, kGeneration,
                                         [this, session, path](std::shared_ptr<StepListener> listener) {
                                           return sync_->Connect(session, "worker", path, std::move(listener));
                                         });
  }

  // Completes step 0, after which both workers have their tokens for step 1.
  static void StartStepOne(FrameWorker* a, FrameWorker* b) {
    ASSERT_TRUE(a->Ask().ok());
    ASSERT_TRUE(b->Ask().ok());
    ASSERT_TRUE(a->Push().ok());
    b->Drain();
    ASSERT_TRUE(a->token() && b->token());
  }

  // Maps the shared memory that holds the worker's values. The worker's token must have named that memory.
  static std::unique_ptr<SharedMemory> MemoryOf(const FrameWorker& worker) {
    EXPECT_TRUE(worker.token() && worker.values_memory());
    if (!worker.values_memory()) return nullptr;
    auto memory = SharedMemory::Map(*worker.values_memory());
    EXPECT_TRUE(memory.ok()) << memory.status();
    return memory.ok() ? *std::move(memory) : nullptr;
  }
  static float FirstOf(const SharedMemory& memory) { return *reinterpret_cast<const float*>(memory.data()); }
  // Returns element 0 of w after n steps with R = 1 and gradients 1, 2, ...
  static float After(int64_t steps) { return -static_cast<float>(steps * (steps + 1)) / 2; }

  SimulatedClock clock_;
  NoFailures events_;
  std::unique_ptr<VariableStore> store_;
  std::unique_ptr<SyncReplicas> sync_;
};

TEST_F(SharedValuesTest, ATokenNamesTheMemoryOfItsStepInPlaceOfValues) {
  Start(1);
  const auto a = Connect(1);
  ASSERT_TRUE(a->Ask().ok());
  for (int64_t step = 0; step < 10; ++step) {
    ASSERT_TRUE(a->token());
    EXPECT_EQ(a->token()->step(), step);
    const auto memory = MemoryOf(*a);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(FirstOf(*memory), After(step));
    ASSERT_TRUE(a->Push().ok());
  }
  EXPECT_TRUE(a->pieces().empty()) << "no value travels";
}

TEST_F(SharedValuesTest, TheValuesOfAFrozenWorkerStayWhileOthersGoOn) {
  Start(1);
  const auto frozen = Connect(1), other = Connect(2);
  ASSERT_TRUE(frozen->Ask().ok());
  ASSERT_TRUE(other->Ask().ok());
  ASSERT_TRUE(frozen->token());
  const v1::Token late = *frozen->token();
  const auto memory = MemoryOf(*frozen);
  ASSERT_NE(memory, nullptr);
  clock_.Advance(kLease);
  sync_->Heartbeat(2);
  sync_->Tick();
  other->Drain();
  for (int64_t step = 0; step < 10; ++step) {
    ASSERT_TRUE(other->token()) << step;
    ASSERT_TRUE(other->Push().ok());
    EXPECT_EQ(FirstOf(*memory), After(0)) << "after step " << step;
  }
  // The frozen worker wakes up, learns that it was late, and continues with the current values.
  ASSERT_TRUE(frozen->Push(late).ok());
  EXPECT_EQ(frozen->results().size(), 1u);
  EXPECT_EQ(frozen->results()[0], v1::CONTRIBUTION_DUPLICATE);
}

TEST_F(SharedValuesTest, AWorkerHoldsItsVersionWhileSending) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne(a.get(), b.get());
  StepFrame reports = a->NewFrame(*a->token());
  a->AddReports(&reports);
  ASSERT_TRUE(a->Send(reports).ok());
  EXPECT_NE(a->connection()->values(), nullptr) << "it still computes with them";
}

TEST_F(SharedValuesTest, AFinishedWorkerHoldsNoVersion) {
  Start(2);
  const auto a = Connect(1), b = Connect(2);
  StartStepOne(a.get(), b.get());
  EXPECT_NE(a->connection()->values(), nullptr);
  ASSERT_TRUE(a->Push().ok());
  EXPECT_FALSE(a->token()) << "it waits for the other's half";
  EXPECT_EQ(a->connection()->values(), nullptr);
}

TEST_F(SharedValuesTest, SharingAndStreamingWorkersMakeTheSameStep) {
  Start(2);
  const auto shared = Connect(1), streamed = Connect(2, ValuePath::kStreamed);
  StartStepOne(shared.get(), streamed.get());
  for (int64_t step = 1; step < 6; ++step) {
    ASSERT_TRUE(shared->token() && streamed->token()) << step;
    const auto memory = MemoryOf(*shared);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(streamed->values_step(), step);
    EXPECT_EQ(streamed->value(0, 0), FirstOf(*memory));
    EXPECT_FALSE(streamed->values_memory());
    ASSERT_TRUE(shared->Push().ok());
    ASSERT_TRUE(streamed->Push().ok());
    shared->Drain();
  }
}

}  // namespace
}  // namespace lockstep
