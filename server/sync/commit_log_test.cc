#include "lockstep/server/sync/commit_log.h"

#include <thread>

#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep {
namespace {

v1::StepCommit Commit(int64_t step) {
  v1::StepCommit commit;
  commit.set_step(step);
  commit.set_mean_loss(static_cast<double>(step) / 2);
  return commit;
}

class CommitLogTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::StepCommit> AwaitNow(int64_t step) { return log_.Await(step, clock_.Now()); }
  int64_t StepAfter(int64_t step) {
    const auto commit = AwaitNow(step);
    return commit.ok() ? commit->step() : -1;
  }
  static std::vector<v1::SessionState::Hook> Hooks(const std::string& state) {
    v1::SessionState::Hook hook;
    hook.set_name("h");
    hook.set_state(state);
    return {hook};
  }
  static v1::SessionState::Settings BatchSize(int64_t batch_size) {
    v1::SessionState::Settings settings;
    settings.set_batch_size(batch_size);
    return settings;
  }
  v1::SessionState Saved() const {
    v1::SessionState state;
    EXPECT_TRUE(state.ParseFromString(log_.Serialize()));
    return state;
  }

  SimulatedClock clock_;
  CommitLog log_{&clock_};
};

TEST_F(CommitLogTest, UpdatesComeInOrder) {
  log_.Start(3, {});
  EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitNow(3).status()));
  log_.Append(Commit(4));
  log_.Append(Commit(5));
  EXPECT_EQ(StepAfter(3), 4);
  EXPECT_EQ(StepAfter(4), 5);
  EXPECT_EQ(AwaitNow(4)->mean_loss(), 2.5);
  log_.End(absl::OkStatus());
  EXPECT_EQ(StepAfter(4), 5) << "what is there is given after the end, too";
  EXPECT_TRUE(absl::IsOutOfRange(AwaitNow(5).status()));
}

TEST_F(CommitLogTest, AWaitEndsWithTheNextUpdateOrTheEnd) {
  log_.Start(0, {});
  absl::StatusOr<v1::StepCommit> first = absl::UnknownError(""), second = absl::UnknownError("");
  std::thread waiter([&] {
    first = log_.Await(0, absl::InfiniteFuture());
    second = log_.Await(1, absl::InfiniteFuture());
  });
  log_.Append(Commit(1));
  log_.End(absl::InvalidArgumentError("the loss is not finite"));
  waiter.join();
  EXPECT_EQ(first->step(), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(second.status()));
}

TEST_F(CommitLogTest, WithoutStateOnlyTheNewestAreKept) {
  log_.Start(0, {});
  for (int64_t step = 1; step <= 200; ++step) log_.Append(Commit(step));
  EXPECT_EQ(StepAfter(0), 200 - static_cast<int64_t>(CommitLog::kCapacity) + 1);
  EXPECT_EQ(log_.Serialize(), "") << "checkpoints hold nothing of it";
}

TEST_F(CommitLogTest, ACheckpointHoldsWhatTheFollowerHasNotSeen) {
  log_.Start(0, {});
  log_.SetState(0, Hooks("begun"));
  for (int64_t step = 1; step <= 100; ++step) log_.Append(Commit(step));
  EXPECT_EQ(StepAfter(0), 1) << "nothing is dropped before it is seen";
  log_.SetState(97, Hooks("97 seen"));
  const v1::SessionState saved = Saved();
  EXPECT_EQ(saved.step(), 97);
  EXPECT_EQ(saved.hook(0).state(), "97 seen");
  ASSERT_EQ(saved.unseen_size(), 3);
  EXPECT_EQ(saved.unseen(0).step(), 98);

  CommitLog next(&clock_);
  next.Start(100, saved);
  EXPECT_EQ(next.restored().hook(0).state(), "97 seen");
  EXPECT_EQ(next.Await(97, clock_.Now())->step(), 98) << "it is seen in the next life";
  next.SetState(98, Hooks("98 seen"));
  v1::SessionState state;
  ASSERT_TRUE(state.ParseFromString(next.Serialize()));
  EXPECT_EQ(state.unseen_size(), 2);
}

TEST_F(CommitLogTest, WhatHooksAssignCountsUntilTheirNextState) {
  v1::SessionState state;
  const auto by_hooks = [&] {
    EXPECT_TRUE(state.ParseFromString(log_.Serialize()));
    return state.assignments_by_hooks();
  };
  log_.SetState(3, Hooks("x"));
  log_.CountAssignment(ChangedBy::kHook);
  log_.CountAssignment(ChangedBy::kProgram);
  EXPECT_EQ(by_hooks(), 1);
  log_.SetState(3, Hooks("x"));
  EXPECT_EQ(by_hooks(), 1) << "a life that has restored it says the same";
  log_.SetState(4, Hooks("y"));
  EXPECT_EQ(by_hooks(), 0);
  EXPECT_EQ(state.assignments(), 2);
}

TEST_F(CommitLogTest, ChangesOfSettingsAreCountedToo) {
  log_.Start(2, {}, /*changes=*/5, BatchSize(7));
  log_.SetState(3, Hooks("x"));
  EXPECT_EQ(Saved().settings().batch_size(), 7);
  log_.CountChange(ChangedBy::kHook, BatchSize(8));
  log_.CountChange(ChangedBy::kHook, absl::nullopt);
  EXPECT_EQ(Saved().settings().batch_size(), 8);
  log_.CountChange(ChangedBy::kProgram, BatchSize(9));
  EXPECT_EQ(Saved().changes(), 7);
  EXPECT_EQ(Saved().settings().batch_size(), 9);
  EXPECT_EQ(Saved().changes_by_hooks(), 2);
  log_.SetState(4, Hooks("y"));
  EXPECT_EQ(Saved().changes(), 7);
  EXPECT_EQ(Saved().changes_by_hooks(), 0);
}

TEST_F(CommitLogTest, SettingsAreKeptWithoutAFollowersState) {
  log_.Start(2, {}, /*changes=*/0, BatchSize(7));
  EXPECT_EQ(log_.Serialize(), "") << "those that the run began with";
  log_.CountChange(ChangedBy::kProgram, BatchSize(8));
  EXPECT_EQ(Saved().changes(), 1);
  EXPECT_EQ(Saved().settings().batch_size(), 8);
}

TEST_F(CommitLogTest, AssignmentsAreCountedWithoutAFollowersState) {
  log_.Start(5, {});
  log_.CountAssignment(ChangedBy::kProgram);
  log_.Append(Commit(6));
  EXPECT_EQ(Saved().assignments(), 1);
  EXPECT_EQ(Saved().unseen_size(), 0);
  CommitLog next(&clock_);
  next.Start(6, Saved());
  next.CountAssignment(ChangedBy::kProgram);
  v1::SessionState state;
  ASSERT_TRUE(state.ParseFromString(next.Serialize()));
  EXPECT_EQ(state.assignments(), 2);
}

}  // namespace
}  // namespace lockstep
