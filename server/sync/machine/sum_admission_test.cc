#include "lockstep/server/sync/machine/sum_admission.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/step/partial_sums.h"
#include "lockstep/server/ps/contribution_set.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Verdict = SumAdmission::Verdict;

constexpr int64_t kElements = 3;
constexpr size_t kSegments = 3;

// Returns a gradient whose sums depend on the order of additions.
std::vector<float> Gradient(int64_t slot) {
  return {1.0f / static_cast<float>(slot + 3), static_cast<float>(slot * slot) * 0.37f,
          1e6f / static_cast<float>(slot + 1)};
}

std::vector<float> SumOf(const SlotBlock& block, int64_t slots) {
  SlotTree tree(block.count, kElements, SlotTree::Memory());
  SlotTree::Result result;
  std::vector<float> gradient;
  for (int64_t slot = 0; slot < block.count; ++slot) {
    gradient = Gradient(block.first + slot);
    result = tree.Add({slot, 1}, FloatChunks(gradient.data(), kElements), 0);
  }
  return {result.sum, result.sum + kElements};
}

// A step to which workers send contributions piece by piece, into trees whose partial sums must stay within the bound.
class Step {
 public:
  Step(int64_t slots, int64_t bound) : slots_(slots), bound_(bound), admission_(slots, bound), covered_(slots) {
    for (size_t i = 0; i < kSegments; ++i) {
      trees_.push_back(std::make_unique<SlotTree>(slots, kElements, SlotTree::Memory()));
    }
    sums_.resize(kSegments);
  }

  // Begins a contribution and returns its session.
  uint64_t Begin(const SlotBlock& block, std::mt19937* random) {
    const uint64_t session = ++last_session_;
    Sender& sender = senders_[session];
    sender.block = block;
    sender.segments.resize(kSegments);
    std::iota(sender.segments.begin(), sender.segments.end(), size_t{0});
    std::shuffle(sender.segments.begin(), sender.segments.end(), *random);
    sender.waits = admission_.Ask(session, block) == Verdict::kWait;
    EXPECT_EQ(admission_.waits(session), sender.waits);
    return session;
  }
  bool waits(uint64_t session) const { return senders_.at(session).waits; }
  // Sends one more piece of the contribution; the last one ends it.
  void Send(uint64_t session) {
    Sender& sender = senders_.at(session);
    ASSERT_FALSE(sender.waits);
    SlotTree& tree = *trees_[sender.segments.back()];
    const std::vector<float> sum = SumOf(sender.block, slots_);
    const SlotTree::Result result = tree.Add(sender.block, FloatChunks(sum.data(), kElements), 0);
    if (result.outcome == SlotTree::Outcome::kComplete) {
      sums_[sender.segments.back()] = std::vector<float>(result.sum, result.sum + kElements);
      tree.ReleaseMemory();
    }
    ASSERT_LE(static_cast<int64_t>(tree.num_sums()), bound_) << sender.block.ToString() << " of " << slots_;
    sender.segments.pop_back();
    if (sender.segments.empty()) End(session, /*whole=*/true);
  }
  void End(uint64_t session, bool whole) {
    const SlotBlock block = senders_.at(session).block;
    senders_.erase(session);
    admission_.End(session, block, whole);
    if (whole) std::fill(covered_.begin() + block.first, covered_.begin() + block.end(), true);
    for (const uint64_t admitted : admission_.Admit()) senders_.at(admitted).waits = false;
  }

  bool done() const {
    return std::all_of(covered_.begin(), covered_.end(), [](bool covered) { return covered; });
  }
  int64_t first_uncovered() const { return std::find(covered_.begin(), covered_.end(), false) - covered_.begin(); }
  std::vector<uint64_t> sessions(bool waiting) const {
    std::vector<uint64_t> found;
    for (const auto& [session, sender] : senders_) {
      if (sender.waits == waiting) found.push_back(session);
    }
    return found;
  }
  SlotBlock block(uint64_t session) const { return senders_.at(session).block; }
  void ExpectTheSameBits() const {
    const std::vector<float> expected = SumOf({0, slots_}, slots_);
    for (const std::vector<float>& sum : sums_) {
      ASSERT_EQ(sum.size(), expected.size());
      EXPECT_EQ(std::memcmp(sum.data(), expected.data(), kElements * sizeof(float)), 0) << slots_;
    }
  }

 private:
  struct Sender {
    SlotBlock block;
    std::vector<size_t> segments;  // left to send
    bool waits = false;
  };

  const int64_t slots_;
  const int64_t bound_;
  SumAdmission admission_;
  std::vector<bool> covered_;
  std::vector<std::unique_ptr<SlotTree>> trees_;
  std::vector<std::vector<float>> sums_;
  std::map<uint64_t, Sender> senders_;
  uint64_t last_session_ = 0;
};

// Sends all pieces of all contributions that may be sent, each time one piece from a random worker.
void SendAll(Step* step, std::mt19937* random) {
  while (true) {
    const std::vector<uint64_t> senders = step->sessions(/*waiting=*/false);
    if (senders.empty()) return;
    step->Send(senders[(*random)() % senders.size()]);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(SumAdmissionTest, EveryOrderOfArrivalEndsWithinTheLeastBound) {
  std::mt19937 random(1);
  for (int64_t slots = 1; slots <= 33; ++slots) {
    std::vector<int64_t> in_order(slots);
    std::iota(in_order.begin(), in_order.end(), 0);
    std::vector<int64_t> even_first = in_order;
    std::stable_partition(even_first.begin(), even_first.end(), [](int64_t slot) { return slot % 2 == 0; });
    std::vector<std::vector<int64_t>> orders = {in_order, {in_order.rbegin(), in_order.rend()}, even_first};
    for (int i = 0; i < 20; ++i) {
      std::shuffle(in_order.begin(), in_order.end(), random);
      orders.push_back(in_order);
    }
    for (const auto& order : orders) {
      for (const bool at_once : {false, true}) {
        Step step(slots, LeastPartialSums(slots));
        for (const int64_t slot : order) {
          step.Begin({slot, 1}, &random);
          if (!at_once) SendAll(&step, &random);
          ASSERT_FALSE(HasFatalFailure());
        }
        SendAll(&step, &random);
        ASSERT_TRUE(step.done()) << slots << " slots: somebody waits for ever";
        step.ExpectTheSameBits();
      }
    }
  }
}

// Tests blocks of several sizes, several copies, and workers that die while they wait or send.
TEST(SumAdmissionTest, DeathsAndCopiesLeaveNobodyWaiting) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const int64_t slots = 1 + static_cast<int64_t>(random() % 33);
    const int64_t bound =
        std::min(MostPartialSums(slots), LeastPartialSums(slots) + static_cast<int64_t>(random() % 2));
    Step step(slots, bound);
    const auto draw_block = [&] {
      while (true) {
        const SlotBlock block = {static_cast<int64_t>(random() % slots), 1 + static_cast<int64_t>(random() % slots)};
        if (block.end() <= slots && IsTreeNode(block, slots)) return block;
      }
    };
    for (int event = 0; event < 60 && !step.done(); ++event) {
      const std::vector<uint64_t> senders = step.sessions(false), waiting = step.sessions(true);
      switch (random() % 6) {
        case 0:
        case 1:
          step.Begin(draw_block(), &random);
          break;
        case 2:
          if (!waiting.empty() && random() % 2 == 0) step.End(waiting[random() % waiting.size()], false);
          break;
        case 3:
          if (!senders.empty() && random() % 2 == 0) step.End(senders[random() % senders.size()], false);
          break;
        default:
          if (!senders.empty()) step.Send(senders[random() % senders.size()]);
      }
      ASSERT_FALSE(HasFatalFailure()) << seed;
    }
    // Compute the missing slots one by one, in order.
    SendAll(&step, &random);
    while (!step.done()) {
      const uint64_t session = step.Begin({step.first_uncovered(), 1}, &random);
      ASSERT_FALSE(step.waits(session)) << "the first slot never waits; seed " << seed;
      SendAll(&step, &random);
      ASSERT_FALSE(HasFatalFailure()) << seed;
    }
    EXPECT_THAT(step.sessions(true), IsEmpty()) << seed;
    step.ExpectTheSameBits();
  }
}

TEST(SumAdmissionTest, AdmitsAFirstSlotAndASiblingAndNothingTooMuch) {
  SumAdmission admission(8, 3);
  EXPECT_EQ(admission.Ask(1, {4, 1}), Verdict::kSum) << "the others still need two";
  EXPECT_EQ(admission.Ask(2, {6, 1}), Verdict::kWait);
  EXPECT_EQ(admission.Ask(3, {5, 1}), Verdict::kSum) << "its sum joins that of 4";
  EXPECT_EQ(admission.Ask(4, {0, 1}), Verdict::kSum) << "the first slot";
  EXPECT_EQ(admission.Ask(4, {0, 1}), Verdict::kSum) << "as before";
  EXPECT_EQ(admission.Ask(5, {2, 2}), Verdict::kSum) << "in order there are as many";
  EXPECT_EQ(admission.last_waiting(), 2u);
  admission.End(4, {0, 1}, /*covers=*/true);
  EXPECT_THAT(admission.Admit(), IsEmpty());
  EXPECT_EQ(admission.Ask(6, {1, 1}), Verdict::kSum);
  admission.End(6, {1, 1}, true);
  EXPECT_THAT(admission.Admit(), IsEmpty()) << "if the worker of [2,4) dies, 2 and 3 come one by one";
  admission.End(5, {2, 2}, true);
  EXPECT_THAT(admission.Admit(), ElementsAre(2u));
}

TEST(SumAdmissionTest, WhatIsDroppedStaysDroppedUntilItEnds) {
  SumAdmission admission(4, 2);
  EXPECT_EQ(admission.Ask(1, {1, 1}), Verdict::kSum);
  EXPECT_EQ(admission.Ask(2, {2, 1}), Verdict::kSum);
  EXPECT_FALSE(admission.any_waiting()) << "two sums are all that there can be";
  SumAdmission narrow(8, 3);
  EXPECT_EQ(narrow.Ask(1, {4, 1}), Verdict::kSum);
  EXPECT_EQ(narrow.Ask(2, {6, 1}), Verdict::kWait);
  narrow.Drop(2);
  EXPECT_FALSE(narrow.any_waiting());
  EXPECT_EQ(narrow.Ask(2, {6, 1}), Verdict::kDrop);
  narrow.End(2, {6, 1}, false);
  EXPECT_EQ(narrow.Ask(2, {0, 4}), Verdict::kSum);
}

TEST(SumAdmissionTest, AnotherStepBeginsEmpty) {
  SumAdmission admission(8, 3);
  EXPECT_EQ(admission.Ask(1, {4, 1}), Verdict::kSum);
  EXPECT_EQ(admission.Ask(2, {6, 1}), Verdict::kWait);
  EXPECT_THAT(admission.Restart(), ElementsAre(2u));
  EXPECT_EQ(admission.Ask(2, {6, 1}), Verdict::kSum);
  EXPECT_EQ(admission.Ask(1, {4, 1}), Verdict::kWait);
}

TEST(SumAdmissionTest, ABoundThatNoOrderExceedsBoundsNothing) {
  SumAdmission admission(8, 4);
  for (int64_t slot = 0; slot < 8; slot += 2) EXPECT_EQ(admission.Ask(slot, {slot, 1}), Verdict::kSum);
}

}  // namespace
}  // namespace lockstep
