#include "server/chief/token_queue.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TokenQueue MakeQueue(int64_t slots) {
  TokenQueue::Options options;
  options.slots = slots;
  options.lease = absl::Seconds(5);
  options.slow_factor = 4;
  return TokenQueue(options);
}

TEST(TokenQueueTest, GivesEachWorkerOneSlotWhenThereAreAsManyWorkersAsSlots) {
  TokenQueue queue = MakeQueue(4);
  for (int64_t worker = 0; worker < 4; ++worker) {
    EXPECT_EQ(queue.Take(worker, 4, kStart), (SlotBlock{worker, 1}));
  }
}

TEST(TokenQueueTest, GivesLargerAlignedBlocksToFewerWorkers) {
  TokenQueue one = MakeQueue(7);
  EXPECT_EQ(one.Take(1, 1, kStart), (SlotBlock{0, 7}));
  TokenQueue two = MakeQueue(4);
  EXPECT_EQ(two.Take(1, 2, kStart), (SlotBlock{0, 2}));
  EXPECT_EQ(two.Take(2, 2, kStart), (SlotBlock{2, 2}));
  TokenQueue three = MakeQueue(8);
  EXPECT_EQ(three.Take(1, 3, kStart), (SlotBlock{0, 2}));
  EXPECT_EQ(three.Take(2, 3, kStart), (SlotBlock{2, 2}));
  EXPECT_EQ(three.Take(3, 3, kStart), (SlotBlock{4, 2}));
  three.Cover({0, 2}, 1, kStart);
  EXPECT_EQ(three.Take(1, 3, kStart), (SlotBlock{6, 2}));
}

TEST(TokenQueueTest, EveryTokenIsANodeOfTheTree) {
  for (int64_t slots = 1; slots <= 17; ++slots) {
    for (int64_t workers = 1; workers <= 20; ++workers) {
      TokenQueue queue = MakeQueue(slots);
      int64_t covered = 0;
      for (uint64_t session = 1; covered < slots; ++session) {
        const auto block = queue.Take(session, workers, kStart);
        ASSERT_TRUE(block.has_value());
        EXPECT_TRUE(IsTreeNode(*block, slots)) << block->ToString() << " of " << slots;
        queue.Cover(*block, session, kStart);
        covered += block->count;
      }
      EXPECT_FALSE(queue.Take(99, workers, kStart).has_value());
    }
  }
}

TEST(TokenQueueTest, ReissuesTheSlotWhenItsLeaseExpires) {
  TokenQueue queue = MakeQueue(2);
  ASSERT_EQ(queue.Take(1, 2, kStart), (SlotBlock{0, 1}));
  ASSERT_EQ(queue.Take(2, 2, kStart), (SlotBlock{1, 1}));
  EXPECT_TRUE(queue.Renew(2, kStart + absl::Seconds(3)));
  EXPECT_TRUE(queue.Expire(kStart + absl::Seconds(4.9)).empty());
  const auto expired = queue.Expire(kStart + absl::Seconds(5));
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].session, 1u);
  EXPECT_FALSE(queue.Renew(1, kStart + absl::Seconds(5)));
  EXPECT_EQ(queue.Take(3, 2, kStart + absl::Seconds(5)), (SlotBlock{0, 1}));
}

TEST(TokenQueueTest, AWorkerThatLeavesFreesItsSlotsAtOnce) {
  TokenQueue queue = MakeQueue(4);
  ASSERT_EQ(queue.Take(1, 2, kStart), (SlotBlock{0, 2}));
  queue.Release(1);
  EXPECT_EQ(queue.FindLease(1), nullptr);
  EXPECT_EQ(queue.Take(2, 2, kStart), (SlotBlock{0, 2}));
}

TEST(TokenQueueTest, MoreWorkersThanSlotsComputeBackups) {
  TokenQueue queue = MakeQueue(2);
  ASSERT_EQ(queue.Take(1, 4, kStart), (SlotBlock{0, 1}));
  ASSERT_EQ(queue.Take(2, 4, kStart + absl::Seconds(1)), (SlotBlock{1, 1}));
  EXPECT_EQ(queue.Take(3, 4, kStart + absl::Seconds(1)), (SlotBlock{0, 1}));
  EXPECT_TRUE(queue.FindLease(3)->backup);
  EXPECT_EQ(queue.Take(4, 4, kStart + absl::Seconds(1)), (SlotBlock{1, 1}));
  EXPECT_FALSE(queue.Take(5, 5, kStart + absl::Seconds(1)).has_value()) << "a third copy helps nobody";
}

TEST(TokenQueueTest, ASlowSlotIsGivenOutASecondTime) {
  TokenQueue queue = MakeQueue(2);
  ASSERT_EQ(queue.Take(1, 2, kStart), (SlotBlock{0, 1}));
  ASSERT_EQ(queue.Take(2, 2, kStart), (SlotBlock{1, 1}));
  queue.Cover({0, 1}, 1, kStart + absl::Seconds(0.5));
  EXPECT_FALSE(queue.Take(1, 2, kStart + absl::Seconds(1.9)).has_value());
  EXPECT_EQ(queue.Take(1, 2, kStart + absl::Seconds(2.1)), (SlotBlock{1, 1}));
}

TEST(TokenQueueTest, ABlockIsGivenOutAgainWhenEveryCopyIsSlow) {
  TokenQueue queue = MakeQueue(2);
  ASSERT_EQ(queue.Take(1, 3, kStart), (SlotBlock{0, 1}));
  queue.Cover({0, 1}, 1, kStart + absl::Seconds(0.5));
  ASSERT_EQ(queue.Take(2, 3, kStart + absl::Seconds(1)), (SlotBlock{1, 1}));
  ASSERT_EQ(queue.Take(3, 3, kStart + absl::Seconds(2)), (SlotBlock{1, 1}));
  EXPECT_FALSE(queue.Take(1, 3, kStart + absl::Seconds(3.9)).has_value()) << "the second copy is not slow yet";
  // The heartbeats of two workers that hang keep their leases; the first of them loses its token at last.
  queue.Release(2);
  queue.Renew(3, kStart + absl::Seconds(3.9));
  EXPECT_EQ(queue.Take(1, 3, kStart + absl::Seconds(4.1)), (SlotBlock{1, 1}));
  EXPECT_FALSE(queue.Take(4, 3, kStart + absl::Seconds(4.2)).has_value());
  EXPECT_EQ(queue.Take(4, 3, kStart + absl::Seconds(6.2)), (SlotBlock{1, 1})) << "a third copy";
}

TEST(TokenQueueTest, AWorkerKeepsItsBlockFromStepToStepWhenItIsFree) {
  TokenQueue queue = MakeQueue(4);
  EXPECT_EQ(queue.Take(1, 2, kStart, SlotBlock{2, 2}), (SlotBlock{2, 2}));
  EXPECT_EQ(queue.Take(2, 2, kStart, SlotBlock{2, 2}), (SlotBlock{0, 2}));
  queue.StartStep();
  EXPECT_EQ(queue.Take(1, 4, kStart, SlotBlock{2, 2}), (SlotBlock{0, 1})) << "a larger block than its share";
}

TEST(TokenQueueTest, ANewStepVoidsAllTokens) {
  TokenQueue queue = MakeQueue(2);
  queue.Take(1, 2, kStart);
  queue.Cover({1, 1}, 2, kStart);
  queue.StartStep();
  EXPECT_EQ(queue.FindLease(1), nullptr);
  EXPECT_EQ(queue.Take(3, 1, kStart), (SlotBlock{0, 2}));
}

}  // namespace
}  // namespace lockstep
