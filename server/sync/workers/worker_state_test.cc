#include "lockstep/server/sync/workers/worker_state.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using Phase = WorkerState::Phase;

const absl::Time kStart = absl::FromUnixSeconds(1000);
const StepToken kToken{7, {2, 2}};

constexpr Phase kPhases[] = {Phase::kConnected, Phase::kWaiting, Phase::kAssigned,
                             Phase::kComputing, Phase::kPushing, Phase::kLeft};

// Returns a worker in a phase, reached by the shortest path.
WorkerState In(Phase phase) {
  WorkerState worker("worker-1", kStart);
  if (phase == Phase::kConnected) return worker;
  if (phase == Phase::kLeft) {
    worker.OnLeave();
    return worker;
  }
  EXPECT_TRUE(worker.OnAsk().ok());
  if (phase != Phase::kWaiting) {
    EXPECT_TRUE(worker.OnAssigned(kToken, kStart));
  }
  if (phase == Phase::kComputing || phase == Phase::kPushing) {
    EXPECT_TRUE(worker.OnTokenSent(0));
  }
  if (phase == Phase::kPushing) {
    EXPECT_TRUE(worker.OnContribution(kToken).ok());
  }
  EXPECT_EQ(worker.phase(), phase);
  return worker;
}

struct Event {
  std::string name;
  std::function<bool(WorkerState*)> apply;
  std::map<Phase, Phase> legal;
};

std::vector<Event> Events() {
  return {
      {"OnAsk",
       [](WorkerState* worker) { return worker->OnAsk().ok(); },
       {{Phase::kConnected, Phase::kWaiting}, {Phase::kComputing, Phase::kWaiting}}},
      {"OnContribution",
       [](WorkerState* worker) { return worker->OnContribution(kToken).ok(); },
       {{Phase::kComputing, Phase::kPushing}, {Phase::kPushing, Phase::kPushing}}},
      {"OnContributed",
       [](WorkerState* worker) { return worker->OnContributed(v1::CONTRIBUTION_ACCEPTED).ok(); },
       {{Phase::kPushing, Phase::kWaiting}}},
      {"OnLeave",
       [](WorkerState* worker) {
         worker->OnLeave();
         return true;
       },
       {{Phase::kConnected, Phase::kLeft},
        {Phase::kWaiting, Phase::kLeft},
        {Phase::kAssigned, Phase::kLeft},
        {Phase::kComputing, Phase::kLeft},
        {Phase::kPushing, Phase::kLeft},
        {Phase::kLeft, Phase::kLeft}}},
      {"OnAssigned",
       [](WorkerState* worker) { return worker->OnAssigned(kToken, kStart); },
       {{Phase::kWaiting, Phase::kAssigned}}},
      {"OnTokenSent",
       [](WorkerState* worker) { return worker->OnTokenSent(0); },
       {{Phase::kAssigned, Phase::kComputing}}},
      {"OnVoided", [](WorkerState* worker) { return worker->OnVoided(); }, {{Phase::kAssigned, Phase::kWaiting}}},
      {"OnLeaseEnded",
       [](WorkerState* worker) { return worker->OnLeaseEnded(); },
       {{Phase::kAssigned, Phase::kWaiting},
        {Phase::kComputing, Phase::kComputing},
        {Phase::kPushing, Phase::kPushing}}},
      {"OnFinishSent",
       [](WorkerState* worker) { return worker->OnFinishSent(); },
       {{Phase::kWaiting, Phase::kLeft}, {Phase::kAssigned, Phase::kLeft}}},
  };
}

class WorkerStateTransitionTest : public ::testing::TestWithParam<Event> {};

TEST_P(WorkerStateTransitionTest, IsLegalInThesePhasesAndChangesNothingInOthers) {
  for (const Phase phase : kPhases) {
    WorkerState worker = In(phase);
    const auto to = GetParam().legal.find(phase);
    const bool legal = to != GetParam().legal.end();
    EXPECT_EQ(GetParam().apply(&worker), legal) << "in phase " << static_cast<int>(phase);
    EXPECT_EQ(worker.phase(), legal ? to->second : phase);
    EXPECT_EQ(worker.silent(), legal && GetParam().name == "OnLeaseEnded");
    EXPECT_EQ(worker.result(),
              legal && GetParam().name == "OnContributed" ? v1::CONTRIBUTION_ACCEPTED : v1::CONTRIBUTION_NONE);
  }
}

INSTANTIATE_TEST_SUITE_P(Events, WorkerStateTransitionTest, ::testing::ValuesIn(Events()),
                         [](const auto& info) { return info.param.name; });

TEST(WorkerStateTest, EachErrorNamesWhatIsWrong) {
  const auto ask = [](Phase phase) { return std::string(In(phase).OnAsk().message()); };
  const auto push = [](Phase phase) { return std::string(In(phase).OnContribution({8, {0, 1}}).message()); };
  EXPECT_EQ(ask(Phase::kWaiting), "a token is already pending");
  EXPECT_EQ(ask(Phase::kAssigned), "a token is already pending");
  EXPECT_EQ(ask(Phase::kPushing), "the previous contribution was not finished");
  EXPECT_EQ(ask(Phase::kLeft), "a request for a token of worker-1, which has left the run");
  EXPECT_EQ(push(Phase::kLeft), "a contribution of worker-1, which has left the run");
  const std::string without =
      "a contribution to slots [0,1) of step 8 without a token for it; the session's last token ";
  EXPECT_EQ(push(Phase::kComputing), without + "is slots [2,4) of step 7");
  for (const Phase phase : {Phase::kConnected, Phase::kWaiting, Phase::kAssigned}) {
    EXPECT_EQ(push(phase), without + "is none") << "a token that was not sent is none";
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(In(Phase::kComputing).OnContribution({8, {0, 1}})));
  EXPECT_TRUE(absl::IsInvalidArgument(In(Phase::kWaiting).OnAsk()));
}

TEST(WorkerStateTest, ASignOfLifeEndsItsSilence) {
  WorkerState worker = In(Phase::kComputing);
  ASSERT_TRUE(worker.OnLeaseEnded());
  EXPECT_TRUE(worker.silent());
  worker.OnHeard(kStart + absl::Seconds(1));
  EXPECT_FALSE(worker.silent());
  EXPECT_EQ(worker.heard(), kStart + absl::Seconds(1));
  EXPECT_TRUE(worker.OnContribution(kToken).ok()) << "late, but its own";
}

TEST(WorkerStateTest, AContributionIsNewWhenAnyOfItIs) {
  WorkerState worker = In(Phase::kPushing);
  EXPECT_EQ(worker.contributed_step(), 7);
  EXPECT_FALSE(worker.any_new());
  worker.MarkNew();
  EXPECT_TRUE(worker.OnContribution(kToken).ok());
  EXPECT_TRUE(worker.any_new());
  ASSERT_TRUE(worker.OnContributed(v1::CONTRIBUTION_ACCEPTED).ok());
  ASSERT_TRUE(worker.OnAssigned({8, {0, 2}}, kStart + absl::Seconds(1)));
  EXPECT_EQ(worker.token_time(), kStart + absl::Seconds(1));
  ASSERT_TRUE(worker.OnTokenSent(0));
  ASSERT_TRUE(worker.OnContribution({8, {0, 2}}).ok());
  EXPECT_FALSE(worker.any_new()) << "of the next contribution nothing has come yet";
  EXPECT_EQ(worker.contributed_step(), 8);
}

TEST(WorkerStateTest, AResultIsHeldUntilItIsSent) {
  WorkerState worker = In(Phase::kPushing);
  ASSERT_TRUE(worker.OnContributed(v1::CONTRIBUTION_DUPLICATE).ok());
  ASSERT_TRUE(worker.OnAssigned(kToken, kStart));
  EXPECT_EQ(worker.result(), v1::CONTRIBUTION_DUPLICATE);
  worker.OnResultSent();
  EXPECT_EQ(worker.result(), v1::CONTRIBUTION_NONE);
}

TEST(WorkerStateTest, AWorkerTakesPartFromItsFirstFrameOn) {
  WorkerState worker = In(Phase::kConnected);
  EXPECT_EQ(worker.not_before_step(), WorkerState::kNever);
  worker.SetStart(3);
  EXPECT_EQ(worker.not_before_step(), 3);
}

}  // namespace
}  // namespace lockstep
