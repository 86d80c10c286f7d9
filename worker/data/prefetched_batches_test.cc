#include "lockstep/worker/data/prefetched_batches.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/worker/data/addressable_batches.h"
#include "lockstep/worker/data/formats/synthetic.h"

namespace lockstep {
namespace {

// A source whose batches encode their step and slot. Preparing a batch advances the clock. From step `blocked_step` on,
// Get waits for Open().
class FakeSource : public BatchSource {
 public:
  explicit FakeSource(SimulatedClock* clock) : clock_(*clock) {}

  const ExampleSpec& spec() const override { return spec_; }

  absl::StatusOr<Batch> Get(int64_t step, int64_t slot) override {
    MutexLock lock(&mutex_);
    ++calls_;
    changed_.SignalAll();
    while (step >= blocked_step_) changed_.Wait(&mutex_);
    clock_.Advance(duration_);
    if (step == 13) return absl::DataLossError(absl::StrCat("slot ", slot));
    Batch batch;
    batch.size = step * 100 + slot;
    return batch;
  }

  void Take(absl::Duration duration) {
    MutexLock lock(&mutex_);
    duration_ = duration;
  }
  void Block(int64_t step) {
    MutexLock lock(&mutex_);
    blocked_step_ = step;
  }
  void Open() {
    MutexLock lock(&mutex_);
    blocked_step_ = INT64_MAX;
    changed_.SignalAll();
  }
  void AwaitCalls(int calls) {
    MutexLock lock(&mutex_);
    while (calls_ < calls) changed_.Wait(&mutex_);
  }
  int calls() {
    MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  const ExampleSpec spec_;
  SimulatedClock& clock_;
  Mutex mutex_;
  CondVar changed_;
  int64_t blocked_step_ ABSL_GUARDED_BY(mutex_) = INT64_MAX;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration duration_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

class PrefetchedBatchesTest : public ::testing::Test {
 protected:
  PrefetchedBatchesTest() {
    auto fake = std::make_unique<FakeSource>(&clock_);
    fake_ = fake.get();
    batches_ = std::make_unique<PrefetchedBatches>(std::move(fake), /*capacity=*/3, Executor::Threads(), &clock_);
  }
  // Makes the thread spend this long on preparing a batch, and takes the batch.
  void PrepareOne(absl::Duration duration) {
    fake_->Take(duration);
    batches_->Prefetch(1000, 0);
    AwaitIdle();
    EXPECT_EQ(batches_->Get(1000, 0)->size, 100000);
  }
  // Gives two hints. The thread prepares the first batch; the second stays a hint until another one follows.
  void HintAtTwo() {
    batches_->Prefetch(1, 0);
    AwaitIdle();
    batches_->Prefetch(2, 0);
  }
  void AwaitIdle() { batches_->AwaitIdle(); }
  int64_t hits() const { return batches_->hits(); }

  SimulatedClock clock_;
  FakeSource* fake_;
  std::unique_ptr<PrefetchedBatches> batches_;
};

namespace {

TEST_F(PrefetchedBatchesTest, GetTakesThePreparedBatch) {
  batches_->Prefetch(1, 2);
  AwaitIdle();
  EXPECT_EQ(fake_->calls(), 1);
  EXPECT_EQ(batches_->Get(1, 2)->size, 102);
  EXPECT_EQ(fake_->calls(), 1);
  EXPECT_EQ(hits(), 1);
  // The batch has been returned, so the next Get computes it again.
  EXPECT_EQ(batches_->Get(1, 2)->size, 102);
  EXPECT_EQ(fake_->calls(), 2);
  EXPECT_EQ(hits(), 1);
}

TEST_F(PrefetchedBatchesTest, GetComputesUnhintedBatches) {
  EXPECT_EQ(batches_->Get(7, 1)->size, 701);
  EXPECT_EQ(hits(), 0);
}

TEST_F(PrefetchedBatchesTest, GetWaitsForTheBatchInPreparation) {
  fake_->Block(1);
  batches_->Prefetch(1, 0);
  fake_->AwaitCalls(1);
  std::thread opener([this] { fake_->Open(); });
  EXPECT_EQ(batches_->Get(1, 0)->size, 100);
  opener.join();
  EXPECT_EQ(fake_->calls(), 1);
  EXPECT_EQ(hits(), 1);
}

TEST_F(PrefetchedBatchesTest, ANewHintDisplacesTheOldest) {
  for (int64_t step = 0; step < 5; ++step) {
    batches_->Prefetch(step, 0);
    AwaitIdle();
  }
  EXPECT_EQ(fake_->calls(), 5);
  EXPECT_EQ(batches_->Get(4, 0)->size, 400);
  EXPECT_EQ(batches_->Get(3, 0)->size, 300);
  EXPECT_EQ(batches_->Get(2, 0)->size, 200);
  EXPECT_EQ(fake_->calls(), 5);
  EXPECT_EQ(batches_->Get(1, 0)->size, 100);
  EXPECT_EQ(fake_->calls(), 6);
}

TEST_F(PrefetchedBatchesTest, AHintWaitsWhileABatchIsReady) {
  batches_->Prefetch(1, 0);
  AwaitIdle();
  batches_->Prefetch(2, 0);
  EXPECT_EQ(fake_->calls(), 1);
  batches_->Prefetch(3, 0);
  fake_->AwaitCalls(3);
  EXPECT_EQ(batches_->Get(1, 0)->size, 100);
  AwaitIdle();
  EXPECT_EQ(batches_->Get(3, 0)->size, 300);
  EXPECT_EQ(hits(), 2);
}

TEST_F(PrefetchedBatchesTest, AHintWaitsNoLongerWhenNoBatchIsReady) {
  batches_->Prefetch(1, 0);
  AwaitIdle();
  batches_->Prefetch(2, 0);
  EXPECT_EQ(batches_->Get(1, 0)->size, 100);
  fake_->AwaitCalls(2);
  EXPECT_EQ(batches_->Get(2, 0)->size, 200);
  EXPECT_EQ(hits(), 2);
}

TEST_F(PrefetchedBatchesTest, ACallerThatIsIdlePreparesABriefBatch) {
  fake_->Take(PrefetchedBatches::kBrief);
  EXPECT_FALSE(batches_->PrepareIfBrief()) << "there is no hint";
  HintAtTwo();
  EXPECT_EQ(fake_->calls(), 1);
  EXPECT_TRUE(batches_->PrepareIfBrief());
  EXPECT_EQ(fake_->calls(), 2);
  EXPECT_FALSE(batches_->PrepareIfBrief());
  EXPECT_EQ(batches_->Get(2, 0)->size, 200);
  EXPECT_EQ(hits(), 1);
}

TEST_F(PrefetchedBatchesTest, SlowBatchesGoToTheThread) {
  fake_->Take(PrefetchedBatches::kBrief + absl::Nanoseconds(1));
  HintAtTwo();
  EXPECT_FALSE(batches_->PrepareIfBrief());
  EXPECT_EQ(fake_->calls(), 1);
}

TEST_F(PrefetchedBatchesTest, OneBatchThatTookLongerChangesNothing) {
  PrepareOne(PrefetchedBatches::kBrief / 2);
  fake_->Take(PrefetchedBatches::kBrief * 4);
  HintAtTwo();
  EXPECT_TRUE(batches_->PrepareIfBrief());
}

TEST_F(PrefetchedBatchesTest, LongBatchesGoToTheThread) {
  PrepareOne(PrefetchedBatches::kBrief / 2);
  for (int i = 0; i < 10; ++i) PrepareOne(PrefetchedBatches::kBrief * 4);
  HintAtTwo();
  EXPECT_FALSE(batches_->PrepareIfBrief());
}

TEST_F(PrefetchedBatchesTest, ARepeatedHintIsOneHint) {
  fake_->Block(0);
  for (int i = 0; i < 10; ++i) batches_->Prefetch(3, 3);
  fake_->AwaitCalls(1);
  fake_->Open();
  AwaitIdle();
  EXPECT_EQ(fake_->calls(), 1);
}

TEST_F(PrefetchedBatchesTest, ErrorsAreHandedOnToo) {
  batches_->Prefetch(13, 4);
  AwaitIdle();
  EXPECT_EQ(batches_->Get(13, 4).status(), absl::DataLossError("slot 4"));
  EXPECT_EQ(fake_->calls(), 1);
}

TEST_F(PrefetchedBatchesTest, StopsWithHintsLeft) {
  fake_->Block(1);
  batches_->Prefetch(1, 0);
  fake_->AwaitCalls(1);
  batches_->Prefetch(2, 0);
  std::thread opener([this] { fake_->Open(); });
  opener.join();
  batches_.reset();
}

TEST(PrefetchedBatchesBitsTest, ManyCallersGetTheBitsOfTheSource) {
  config::v1::InputConfig::Synthetic synthetic;
  synthetic.set_examples(100);
  synthetic.set_classes(3);
  synthetic.add_shape(16);
  config::v1::InputConfig config;
  config.set_batch_size(8);
  const auto create = [&] {
    return *CreateBatchSource(*CreateSyntheticDataset(synthetic, 1), config, BatchSourceOptions());
  };
  auto plain = create();
  std::vector<std::string> expected;
  for (int64_t step = 0; step < 50; ++step) expected.emplace_back(plain->Get(step, 0)->features.bytes());
  PrefetchedBatches prefetched(create());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 50; ++i) {
        const int64_t step = (i * (2 * t + 1)) % 50;
        prefetched.Prefetch((step + 1) % 50, 0);
        wrong += prefetched.Get(step, 0)->features.bytes() != expected[step];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lockstep
