#include "lockstep/server/chief/run/run_life.h"

#include <functional>
#include <map>
#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

using Event = std::function<bool(RunLife*)>;

std::map<std::string, Event> Events() {
  return {{"BeginStart", [](RunLife* life) { return life->BeginStart(); }},
          {"AbandonStart", [](RunLife* life) { return life->AbandonStart(); }},
          {"Train", [](RunLife* life) { return life->Train(); }},
          {"Finish", [](RunLife* life) { return life->Finish(); }},
          {"Fail", [](RunLife* life) { return life->Fail(absl::InvalidArgumentError("NaN")); }}};
}

RunLife In(v1::RunStatus::Phase phase) {
  RunLife life;
  if (phase == v1::RunStatus::WAITING_FOR_MODEL) return life;
  life.BeginStart();
  if (phase == v1::RunStatus::TRAINING || phase == v1::RunStatus::FAILED) life.Train();
  if (phase == v1::RunStatus::FINISHED) life.Finish();
  if (phase == v1::RunStatus::FAILED) life.Fail(absl::InvalidArgumentError("NaN"));
  return life;
}

// Tests the table in the class comment.
TEST(RunLifeTest, EveryEventFollowsTheTable) {
  const std::map<v1::RunStatus::Phase, std::map<std::string, v1::RunStatus::Phase>> table = {
      {v1::RunStatus::WAITING_FOR_MODEL, {{"BeginStart", v1::RunStatus::RESTORING}}},
      {v1::RunStatus::RESTORING,
       {{"AbandonStart", v1::RunStatus::WAITING_FOR_MODEL},
        {"Train", v1::RunStatus::TRAINING},
        {"Finish", v1::RunStatus::FINISHED}}},
      {v1::RunStatus::TRAINING, {{"Finish", v1::RunStatus::FINISHED}, {"Fail", v1::RunStatus::FAILED}}},
      {v1::RunStatus::FINISHED, {}},
      {v1::RunStatus::FAILED, {}},
  };
  for (const auto& [from, moves] : table) {
    for (const auto& [name, event] : Events()) {
      RunLife life = In(from);
      ASSERT_EQ(life.phase(), from);
      const auto move = moves.find(name);
      EXPECT_EQ(event(&life), move != moves.end()) << from << " " << name;
      EXPECT_EQ(life.phase(), move != moves.end() ? move->second : from) << from << " " << name;
    }
  }
}

TEST(RunLifeTest, IsOverWhenTheRunHasFinishedOrFailed) {
  EXPECT_FALSE(In(v1::RunStatus::TRAINING).over());
  EXPECT_TRUE(In(v1::RunStatus::FINISHED).over());
  EXPECT_TRUE(In(v1::RunStatus::FAILED).over());
}

TEST(RunLifeTest, KeepsTheFirstFailure) {
  RunLife life = In(v1::RunStatus::TRAINING);
  EXPECT_TRUE(life.failure().ok());
  EXPECT_TRUE(life.Fail(absl::InvalidArgumentError("first")));
  EXPECT_FALSE(life.Fail(absl::InvalidArgumentError("second")));
  EXPECT_EQ(life.failure().message(), "first");
}

TEST(RunLifeTest, OneWorkerAtATimeDeclaresWhatTheRunLacks) {
  RunLife life;
  EXPECT_TRUE(life.BeginDeclaration().ok());
  EXPECT_TRUE(absl::IsUnavailable(life.BeginDeclaration()));
  EXPECT_EQ(life.CheckOpen().message(), "the chief is initializing the model");
  life.EndDeclaration();
  EXPECT_TRUE(life.CheckOpen().ok());
  EXPECT_TRUE(life.BeginDeclaration().ok());
}

TEST(RunLifeTest, NobodyDeclaresAnythingOnceAStopIsRequested) {
  RunLife life;
  EXPECT_TRUE(life.RequestStop(absl::UnixEpoch()));
  EXPECT_EQ(life.BeginDeclaration().message(), "the chief is stopping");
  EXPECT_TRUE(absl::IsUnavailable(life.CheckOpen()));
}

TEST(RunLifeTest, TheFirstStopSetsTheDeadline) {
  RunLife life;
  EXPECT_FALSE(life.stop_requested());
  EXPECT_EQ(life.stop_deadline(), absl::InfiniteFuture());
  EXPECT_TRUE(life.RequestStop(absl::FromUnixSeconds(5)));
  EXPECT_FALSE(life.RequestStop(absl::FromUnixSeconds(9)));
  EXPECT_TRUE(life.stop_requested());
  EXPECT_EQ(life.stop_deadline(), absl::FromUnixSeconds(5));
}

TEST(RunLifeTest, AStopMayBeRequestedInEveryPhaseAndChangesNone) {
  for (const auto phase : {v1::RunStatus::WAITING_FOR_MODEL, v1::RunStatus::RESTORING, v1::RunStatus::TRAINING,
                           v1::RunStatus::FINISHED, v1::RunStatus::FAILED}) {
    RunLife life = In(phase);
    EXPECT_TRUE(life.RequestStop(absl::UnixEpoch()));
    EXPECT_EQ(life.phase(), phase);
  }
}

TEST(RunLifeTest, AnAbandonedRunIsNotCancelled) {
  RunLife life;
  EXPECT_TRUE(life.CheckNotStopping().ok());
  life.Abandon(absl::FailedPreconditionError("another chief"));
  EXPECT_EQ(life.CheckNotStopping(), absl::FailedPreconditionError("another chief"));
  RunLife stopped;
  stopped.RequestStop(absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsCancelled(stopped.CheckNotStopping()));
}

TEST(RunLifeTest, AnAbandonedRunStopsAndKeepsItsReason) {
  RunLife life = In(v1::RunStatus::TRAINING);
  EXPECT_TRUE(life.abandoned().ok());
  life.Abandon(absl::FailedPreconditionError("taken over"));
  life.Abandon(absl::FailedPreconditionError("emptied"));
  EXPECT_TRUE(life.stop_requested());
  EXPECT_FALSE(life.RequestStop(absl::UnixEpoch()));
  EXPECT_EQ(life.abandoned().message(), "taken over");
}

}  // namespace
}  // namespace lockstep
