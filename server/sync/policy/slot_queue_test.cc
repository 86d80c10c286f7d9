#include "lockstep/server/sync/policy/slot_queue.h"

#include <algorithm>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/server/sync/workers/token_leases.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Duration kLease = absl::Seconds(5);

// A queue and the leases of its tokens, which are kept as the machine keeps them.
class LeasedQueue {
 public:
  explicit LeasedQueue(int64_t slots) : slots_(slots), queue_({slots, kLease, /*slow_factor=*/4}), leases_(kLease) {}

  // Takes a token for `session`, which must not hold one, while `workers` take part.
  absl::optional<SlotBlock> Take(uint64_t session, int64_t workers, absl::Time now,
                                 const absl::optional<SlotBlock>& preferred = absl::nullopt) {
    const auto block = Give(session, queue_.TakeFree(workers, slots_, now, preferred), now);
    return block ? block : TakeBackup(session, /*single=*/workers > slots_, now);
  }
  absl::optional<SlotBlock> TakeBackup(uint64_t session, bool single, absl::Time now) {
    return Give(session, queue_.TakeBackup(single, now), now);
  }
  absl::optional<SlotBlock> TakeFirst(uint64_t session, int64_t workers, absl::Time now) {
    const auto block = Give(session, queue_.TakeFirst(workers, now), now);
    return block ? block : Give(session, queue_.TakeFirstCopy(leases_, now), now);
  }
  void StartStep() {
    queue_.StartStep();
    leases_.Clear();
  }
  void Suspend(uint64_t session, absl::Time now) { queue_.Suspend(*leases_.Suspend(session, now)); }
  void Resume(uint64_t session, absl::Time now) { queue_.Resume(*leases_.Resume(session, now)); }
  bool IsSlow(uint64_t session, absl::Time now) const { return queue_.IsSlow(*leases_.Find(session), now); }
  void Cover(const SlotBlock& block, uint64_t session, absl::Time now) {
    const auto lease = leases_.Release(session);
    queue_.Cover(block, lease ? &*lease : nullptr, now);
  }
  void Release(uint64_t session) {
    if (const auto lease = leases_.Release(session)) queue_.Release(*lease);
  }
  bool AnythingDue(absl::Time now) const { return queue_.AnythingDue(now); }
  bool AnyBackup(bool single, absl::Time now) const { return queue_.AnyBackup(single, now); }

 private:
  absl::optional<SlotBlock> Give(uint64_t session, const absl::optional<SlotBlock>& block, absl::Time now) {
    if (block) leases_.Give(session, {/*step=*/0, *block}, /*backup=*/false, now);
    return block;
  }

  const int64_t slots_;
  SlotQueue queue_;
  TokenLeases leases_;
};

TEST(SlotQueueTest, GivesEachOfAsManyWorkersOneSlot) {
  LeasedQueue queue(4);
  for (int64_t worker = 0; worker < 4; ++worker) {
    EXPECT_EQ(queue.Take(worker, 4, kStart), (SlotBlock{worker, 1}));
  }
}

TEST(SlotQueueTest, GivesLargerAlignedBlocksToFewerWorkers) {
  LeasedQueue one(7);
  EXPECT_EQ(one.Take(1, 1, kStart), (SlotBlock{0, 7}));
  LeasedQueue two(4);
  EXPECT_EQ(two.Take(1, 2, kStart), (SlotBlock{0, 2}));
  EXPECT_EQ(two.Take(2, 2, kStart), (SlotBlock{2, 2}));
  LeasedQueue three(8);
  EXPECT_EQ(three.Take(1, 3, kStart), (SlotBlock{0, 2}));
  EXPECT_EQ(three.Take(2, 3, kStart), (SlotBlock{2, 2}));
  EXPECT_EQ(three.Take(3, 3, kStart), (SlotBlock{4, 2}));
  three.Cover({0, 2}, 1, kStart);
  EXPECT_EQ(three.Take(1, 3, kStart), (SlotBlock{6, 2}));
}

TEST(SlotQueueTest, EveryTokenIsANodeOfTheTree) {
  for (int64_t slots = 1; slots <= 17; ++slots) {
    for (int64_t workers = 1; workers <= 20; ++workers) {
      LeasedQueue queue(slots);
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

TEST(SlotQueueTest, AnHourOfPauseDoesNotHideASlowWorker) {
  LeasedQueue queue(4);
  absl::Time now = kStart;
  for (const absl::Duration took : {absl::Seconds(1), absl::Hours(1)}) {
    const auto block = queue.Take(1, 4, now);
    now += took;
    queue.Cover(*block, 1, now);
  }
  ASSERT_EQ(queue.Take(1, 4, now), (SlotBlock{2, 1}));
  EXPECT_FALSE(queue.AnyBackup(/*single=*/false, now + absl::Seconds(4)));
  EXPECT_TRUE(queue.AnyBackup(/*single=*/false, now + absl::Minutes(1)));
}

TEST(SlotQueueTest, ALeaseThatEndsFreesItsSlots) {
  LeasedQueue queue(4);
  ASSERT_EQ(queue.Take(1, 2, kStart), (SlotBlock{0, 2}));
  queue.Release(1);
  EXPECT_EQ(queue.Take(2, 2, kStart), (SlotBlock{0, 2}));
}

TEST(SlotQueueTest, MoreWorkersThanSlotsComputeBackups) {
  LeasedQueue queue(2);
  ASSERT_EQ(queue.Take(1, 4, kStart), (SlotBlock{0, 1}));
  ASSERT_EQ(queue.Take(2, 4, kStart + absl::Seconds(1)), (SlotBlock{1, 1}));
  EXPECT_EQ(queue.Take(3, 4, kStart + absl::Seconds(1)), (SlotBlock{0, 1}));
  EXPECT_EQ(queue.Take(4, 4, kStart + absl::Seconds(1)), (SlotBlock{1, 1}));
  EXPECT_FALSE(queue.Take(5, 5, kStart + absl::Seconds(1)).has_value()) << "a third copy helps nobody";
}

TEST(SlotQueueTest, ASlowSlotIsGivenOutASecondTime) {
  LeasedQueue queue(2);
  ASSERT_EQ(queue.Take(1, 2, kStart), (SlotBlock{0, 1}));
  ASSERT_EQ(queue.Take(2, 2, kStart), (SlotBlock{1, 1}));
  queue.Cover({0, 1}, 1, kStart + absl::Seconds(0.5));
  EXPECT_FALSE(queue.Take(1, 2, kStart + absl::Seconds(1.9)).has_value());
  EXPECT_EQ(queue.Take(1, 2, kStart + absl::Seconds(2.1)), (SlotBlock{1, 1}));
}

TEST(SlotQueueTest, ReissuesAnUntimedBlockAfterLeases) {
  LeasedQueue queue(4);
  ASSERT_EQ(queue.Take(1, 1, kStart), (SlotBlock{0, 4}));
  EXPECT_FALSE(queue.Take(2, 2, kStart + absl::Seconds(20)).has_value()) << "the first step may be slow";
  EXPECT_EQ(queue.Take(2, 2, kStart + absl::Seconds(20.1)), (SlotBlock{0, 4})) << "four leases";
  EXPECT_FALSE(queue.Take(3, 3, kStart + absl::Seconds(30)).has_value()) << "the second copy is not slow yet";
  // Measured times count from this contribution on.
  queue.Cover({0, 4}, 2, kStart + absl::Seconds(20.5));
  queue.StartStep();
  ASSERT_EQ(queue.Take(1, 2, kStart + absl::Seconds(30)), (SlotBlock{0, 2}));
  ASSERT_EQ(queue.Take(2, 2, kStart + absl::Seconds(30)), (SlotBlock{2, 2}));
  EXPECT_EQ(queue.Take(3, 2, kStart + absl::Seconds(31)), (SlotBlock{0, 2}))
      << "four times 0.1 s for each of two slots";
}

TEST(SlotQueueTest, TheUsualTimeIsThatOfTheSlotsSoFar) {
  LeasedQueue queue(4);
  for (const uint64_t session : {1, 2, 3, 4}) ASSERT_TRUE(queue.Take(session, 4, kStart).has_value());
  for (const uint64_t session : {1, 2, 3}) {
    queue.Cover({static_cast<int64_t>(session) - 1, 1}, session, kStart + absl::Seconds(0.5));
  }
  EXPECT_FALSE(queue.Take(1, 4, kStart + absl::Seconds(1.9)).has_value());
  EXPECT_EQ(queue.Take(1, 4, kStart + absl::Seconds(2.1)), (SlotBlock{3, 1})) << "four times the half second";
}

TEST(SlotQueueTest, AContributionThatWaitsIsNotComputedAgain) {
  LeasedQueue queue(2);
  queue.Take(1, 2, kStart);
  queue.Take(2, 2, kStart);
  queue.Suspend(2, kStart + absl::Seconds(1));
  queue.Suspend(1, kStart + absl::Seconds(1));
  EXPECT_EQ(queue.Take(3, 3, kStart + absl::Seconds(100)), absl::nullopt) << "no backup";
  queue.Resume(1, kStart + absl::Seconds(101));
  EXPECT_FALSE(queue.IsSlow(1, kStart + absl::Seconds(120)));
  EXPECT_TRUE(queue.IsSlow(1, kStart + absl::Seconds(121)));
  EXPECT_EQ(queue.TakeBackup(3, false, kStart + absl::Seconds(101)), absl::nullopt) << "the wait was not its own";
  EXPECT_EQ(queue.TakeBackup(3, false, kStart + absl::Seconds(121)), (SlotBlock{0, 1})) << "it is slow by itself";
  queue.Cover({0, 1}, 3, kStart + absl::Seconds(121));
  queue.Release(2);
  EXPECT_EQ(queue.Take(3, 2, kStart + absl::Seconds(121)), (SlotBlock{1, 1})) << "free";
}

TEST(SlotQueueTest, TheFirstSlotComesFirst) {
  LeasedQueue queue(4);
  EXPECT_EQ(queue.Take(1, 2, kStart), (SlotBlock{0, 2}));
  EXPECT_EQ(queue.TakeFirst(2, 2, kStart), absl::nullopt) << "somebody is at it";
  EXPECT_EQ(queue.TakeFirst(2, 2, kStart + absl::Seconds(21)), (SlotBlock{0, 2})) << "who is slow";
  queue.Release(1);
  queue.Release(2);
  EXPECT_EQ(queue.Take(1, 4, kStart, SlotBlock{2, 1}), (SlotBlock{2, 1}));
  EXPECT_EQ(queue.TakeFirst(2, 1, kStart), (SlotBlock{0, 2})) << "what is free beside it";
  queue.Cover({0, 2}, 2, kStart);
  queue.Release(1);
  EXPECT_EQ(queue.TakeFirst(1, 4, kStart), (SlotBlock{2, 1}));
  queue.Cover({2, 1}, 1, kStart);
  queue.Cover({3, 1}, 1, kStart);
  EXPECT_EQ(queue.TakeFirst(1, 4, kStart), absl::nullopt);
}

TEST(SlotQueueTest, ABlockIsGivenOutAgainWhenEveryCopyIsSlow) {
  LeasedQueue queue(2);
  ASSERT_EQ(queue.Take(1, 3, kStart), (SlotBlock{0, 1}));
  queue.Cover({0, 1}, 1, kStart + absl::Seconds(0.5));
  ASSERT_EQ(queue.Take(2, 3, kStart + absl::Seconds(1)), (SlotBlock{1, 1}));
  ASSERT_EQ(queue.Take(3, 3, kStart + absl::Seconds(2)), (SlotBlock{1, 1}));
  EXPECT_FALSE(queue.Take(1, 3, kStart + absl::Seconds(3.9)).has_value()) << "the second copy is not slow yet";
  // Two hung workers keep their leases alive with heartbeats. Then the first of them loses its token.
  queue.Release(2);
  EXPECT_EQ(queue.Take(1, 3, kStart + absl::Seconds(4.1)), (SlotBlock{1, 1}));
  EXPECT_FALSE(queue.Take(4, 3, kStart + absl::Seconds(4.2)).has_value());
  EXPECT_EQ(queue.Take(4, 3, kStart + absl::Seconds(6.2)), (SlotBlock{1, 1})) << "a third copy";
}

TEST(SlotQueueTest, AWorkerKeepsItsFreeBlock) {
  LeasedQueue queue(4);
  EXPECT_EQ(queue.Take(1, 2, kStart, SlotBlock{2, 2}), (SlotBlock{2, 2}));
  EXPECT_EQ(queue.Take(2, 2, kStart, SlotBlock{2, 2}), (SlotBlock{0, 2}));
  queue.StartStep();
  EXPECT_EQ(queue.Take(1, 4, kStart, SlotBlock{2, 2}), (SlotBlock{0, 1})) << "a larger block than its share";
  queue.StartStep();
  EXPECT_EQ(queue.Take(1, 1, kStart, SlotBlock{2, 2}), (SlotBlock{0, 4})) << "a smaller one";
}

TEST(SlotQueueTest, AnythingIsDueWhenSomebodyCouldGetAToken) {
  LeasedQueue queue(2);
  EXPECT_TRUE(queue.AnythingDue(kStart));
  queue.Take(1, 2, kStart);
  EXPECT_TRUE(queue.AnythingDue(kStart));
  queue.Take(2, 2, kStart);
  EXPECT_TRUE(queue.AnythingDue(kStart)) << "a backup, if there were more workers";
  queue.Take(3, 4, kStart);
  queue.Take(4, 4, kStart);
  EXPECT_FALSE(queue.AnythingDue(kStart + absl::Seconds(20))) << "nobody knows yet what is slow";
  EXPECT_TRUE(queue.AnythingDue(kStart + absl::Seconds(20.1))) << "four leases";
  queue.Release(3);
  EXPECT_TRUE(queue.AnythingDue(kStart));
  queue.Take(3, 4, kStart);
  queue.Cover({0, 1}, 1, kStart + absl::Seconds(0.5));
  EXPECT_FALSE(queue.AnythingDue(kStart + absl::Seconds(2)));
  EXPECT_TRUE(queue.AnythingDue(kStart + absl::Seconds(2.1))) << "both copies of slot 1 are slow";
  queue.Cover({1, 1}, 2, kStart + absl::Seconds(2.1));
  EXPECT_FALSE(queue.AnythingDue(kStart + absl::Hours(1)));
  queue.StartStep();
  EXPECT_TRUE(queue.AnythingDue(kStart));
}

// A simple model of the queue, which derives free blocks and backups from the leases alone at every call.
class PlainQueue {
 public:
  explicit PlainQueue(int64_t slots) : covered_(slots, false) {}

  bool IsFree(const SlotBlock& block) const {
    for (int64_t slot = block.first; slot < block.end(); ++slot) {
      if (covered_[slot]) return false;
      for (const auto& lease : leases_) {
        if (lease.second.first <= slot && slot < lease.second.end()) return false;
      }
    }
    return true;
  }
  bool AnyFree() const {
    for (int64_t slot = 0; slot < static_cast<int64_t>(covered_.size()); ++slot) {
      if (IsFree({slot, 1})) return true;
    }
    return false;
  }
  int CopiesOf(const SlotBlock& block) const {
    return static_cast<int>(
        std::count_if(leases_.begin(), leases_.end(), [&](const auto& lease) { return lease.second == block; }));
  }
  void Take(uint64_t session, const SlotBlock& block) { leases_[session] = block; }
  void Release(uint64_t session) { leases_.erase(session); }
  void Cover(const SlotBlock& block, uint64_t session) {
    for (int64_t slot = block.first; slot < block.end(); ++slot) covered_[slot] = true;
    Release(session);
  }
  const std::map<uint64_t, SlotBlock>& leases() const { return leases_; }

 private:
  std::vector<bool> covered_;
  std::map<uint64_t, SlotBlock> leases_;
};

TEST(SlotQueueTest, GivesWhatIsFreeOrABackupInAnyOrderOfEvents) {
  constexpr uint64_t kSessions = 24;
  const Philox random(1, StableHash("events"));
  uint64_t draws = 0;
  const auto draw = [&](uint64_t below) { return random.At(draws++)[0] % below; };
  for (const int64_t slots : {1, 2, 5, 8, 13}) {
    for (const int64_t workers : {2, 5, 24}) {
      LeasedQueue queue(slots);
      PlainQueue plain(slots);
      int taken = 0, backups = 0;
      for (int event = 0; event < 2000; ++event) {
        const uint64_t session = draw(kSessions);
        const auto held = plain.leases().find(session);
        if (held == plain.leases().end()) {
          const bool free = plain.AnyFree();
          const auto block = queue.Take(session, workers, kStart);
          if (!block) {
            EXPECT_FALSE(free);
            continue;
          }
          ++taken;
          EXPECT_EQ(plain.IsFree(*block), free) << "first what nobody computes";
          if (!free) {
            ++backups;
            EXPECT_EQ(plain.CopiesOf(*block), 1);
            EXPECT_GT(workers, slots);
          }
          plain.Take(session, *block);
        } else if (draw(8) == 0) {
          queue.Release(session);
          plain.Release(session);
        } else {
          const SlotBlock block = held->second;
          queue.Cover(block, session, kStart);  // takes no time, so nothing is ever slow
          plain.Cover(block, session);
        }
        if (!plain.AnyFree() && plain.leases().empty()) {
          EXPECT_FALSE(queue.AnythingDue(kStart));
          queue.StartStep();
          plain = PlainQueue(slots);
        }
      }
      EXPECT_GT(taken, 50);
      EXPECT_EQ(backups > 0, workers > slots) << slots << " slots, " << workers << " workers";
    }
  }
}

TEST(SlotQueueTest, ANewStepFreesAllSlots) {
  LeasedQueue queue(2);
  queue.Take(1, 2, kStart);
  queue.Cover({1, 1}, 2, kStart);
  queue.StartStep();
  EXPECT_EQ(queue.Take(3, 1, kStart), (SlotBlock{0, 2}));
}

}  // namespace
}  // namespace lockstep
