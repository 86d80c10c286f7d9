#include "lockstep/train/hooks/base/hooked_session.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A hook that records the calls that it receives and behaves as the test requests.
class RecordingHook : public Hook {
 public:
  explicit RecordingHook(std::vector<std::string>* calls, std::string name = "a") : calls_(calls), name_(name) {}

  std::string name() const override { return name_; }
  absl::Status Begin() override { return Note("begin"); }
  absl::Status AfterCreateSession(Session& session) override { return Note("created"); }
  absl::Status BeforeRun(RunContext& context) override {
    if (before_run) before_run(context);
    return Note(absl::StrCat("before ", context.global_step()));
  }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override {
    const absl::Status status = Note(absl::StrCat("after ", values.result.global_step));
    if (status.ok() && after_run) after_run(context, values);
    return status;
  }
  absl::Status End(Session& session) override { return Note("end"); }
  bool GatesAt(int64_t step) const override { return !gates.has_value() || gates->count(step) > 0; }
  bool OnlyLooks() const override { return only_looks; }
  std::string State() const override { return state; }
  absl::Status SetState(absl::string_view restored) override {
    state = std::string(restored);
    return Note(absl::StrCat("restored ", state));
  }

  std::function<void(RunContext&)> before_run;
  std::function<void(RunContext&, const RunValues&)> after_run;
  // The steps that the hook gates. If absent, it gates every step.
  absl::optional<std::set<int64_t>> gates;
  std::string state;
  bool only_looks = false;
  // The call that fails, and its error.
  std::string failing_call;
  absl::Status error = absl::InternalError("broken");

 private:
  absl::Status Note(const std::string& call) {
    calls_->push_back(absl::StrCat(name_, " ", call));
    return call == failing_call ? error : absl::OkStatus();
  }

  std::vector<std::string>* const calls_;
  const std::string name_;
};

class HookedSessionTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<HookedSession>> Open(FakeSession* base, std::vector<Hook*> hooks,
                                                      bool gate_loop = false) {
    HookedSession::Options options;
    options.hooks = std::move(hooks);
    if (base->is_chief()) options.gate = base;
    options.gate_loop = gate_loop;
    return HookedSession::Open(base, std::move(options));
  }

  static FakeSession::Options Worker(std::vector<int64_t> steps) {
    FakeSession::Options options;
    options.chief = false;
    for (const int64_t step : steps) {
      StepResult block;
      block.global_step = step;
      options.blocks.push_back(block);
    }
    return options;
  }

  // Expects that a hook's action after step 1, recorded as `act`, is not repeated by the next chief, whose checkpoint
  // contains it. The next chief performs the action only after step 2.
  void ExpectNotMadeAgain(const std::function<void(RunContext&, const RunValues&)>& after_run, const std::string& act) {
    FakeSession base;
    RecordingHook a(&calls_, "a"), b(&calls_, "b");
    a.after_run = after_run;
    FakeSession::Options killed;
    b.after_run = [&](RunContext&, const RunValues&) { killed = base.NextLife(); };
    auto session = Open(&base, {&a, &b});
    ASSERT_TRUE((*session)->Run(op_).ok());
    EXPECT_THAT(base.acts(), ElementsAre(act + " 1"));

    FakeSession next(killed);
    b.after_run = nullptr;
    session = Open(&next, {&a, &b});
    ASSERT_TRUE((*session)->Run(op_).ok());
    EXPECT_THAT(next.acts(), ElementsAre());
    ASSERT_TRUE((*session)->Run(op_).ok());
    EXPECT_THAT(next.acts(), ElementsAre(act + " 2"));
  }

  std::vector<std::string> calls_;
  const TrainOp op_{};
};

TEST_F(HookedSessionTest, CallsHooksInTheirOrderAroundEachStep) {
  FakeSession::Options options;
  options.total_steps = 2;
  FakeSession base(options);
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  ASSERT_TRUE(BeginHooks({&a, &b}).ok());
  auto session = Open(&base, {&a, &b});
  ASSERT_TRUE(session.ok()) << session.status();
  while (!(*session)->ShouldStop()) ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_THAT(calls_,
              ElementsAre("a begin", "b begin", "a created", "b created", "a before 0", "b before 0", "a after 1",
                          "b after 1", "a before 1", "b before 1", "a after 2", "b after 2", "a end", "b end"));
  EXPECT_THAT(base.acts(), ElementsAre("close"));
}

TEST_F(HookedSessionTest, AHookThatRunsItsSessionIsRefused) {
  FakeSession base;
  RecordingHook a(&calls_);
  absl::Status refused;
  a.after_run = [&](RunContext& context, const RunValues&) { refused = context.session().Run(op_).status(); };
  auto session = Open(&base, {&a});
  EXPECT_TRUE((*session)->Run(op_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(base.newest(), 1) << "nothing ran";
}

TEST_F(HookedSessionTest, BeginEndsWithTheFirstErrorWhichNamesTheHook) {
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.failing_call = "begin";
  const absl::Status status = BeginHooks({&a, &b});
  EXPECT_EQ(status, absl::InternalError("hook a: broken"));
  EXPECT_THAT(calls_, ElementsAre("a begin"));
}

// MS-02.
TEST_F(HookedSessionTest, AStopTakesEffectAfterAllHooks) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.after_run = [](RunContext& context, const RunValues& values) {
    if (values.result.global_step == 2) context.RequestStop("enough");
  };
  auto session = Open(&base, {&a, &b});
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_FALSE((*session)->ShouldStop());
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_EQ(calls_.back(), "b after 2");
  EXPECT_THAT(base.acts(), ElementsAre("stop 2: hook a: enough"));
  EXPECT_EQ(base.newest(), 2);
  const auto further = (*session)->Run(op_);
  EXPECT_EQ(further.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(further.status().message(), HasSubstr("hook a: enough"));
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_EQ(calls_.back(), "b end");
}

TEST_F(HookedSessionTest, AnEndThatMayBeOnRecordIsNoFailureOfTheRun) {
  FakeSession base;
  base.set_stop_status(absl::UnknownError("the disk has not said"));
  RecordingHook a(&calls_);
  a.after_run = [](RunContext& context, const RunValues&) { context.RequestStop("enough"); };
  auto session = Open(&base, {&a});
  EXPECT_TRUE((*session)->Run(op_).ok());
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_TRUE((*session)->Close().ok());

  FakeSession other;
  other.set_stop_status(absl::InternalError("the disk has not taken it"));
  auto refused = Open(&other, {&a});
  EXPECT_TRUE(absl::IsInternal((*refused)->Run(op_).status()));
}

TEST_F(HookedSessionTest, WhatHooksHaveSeenIsKeptBeforeTheRunIsEnded) {
  FakeSession base;
  RecordingHook a(&calls_);
  a.after_run = [](RunContext& context, const RunValues&) { context.RequestStop(""); };
  auto session = Open(&base, {&a});
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_THAT(base.calls(), ElementsAre("state 0", "allow 0", "state 1", "stop 1: hook a: a hook asked for the end"));
}

TEST_F(HookedSessionTest, AfterRunIsNotCalledWhenTheRunFails) {
  FakeSession base;
  RecordingHook a(&calls_);
  auto session = Open(&base, {&a});
  base.FailNextRun(absl::InternalError("the loss is not finite"));
  EXPECT_EQ((*session)->Run(op_).status(), absl::InternalError("the loss is not finite"));
  EXPECT_EQ((*session)->Close(), absl::InternalError("the loss is not finite"));
  EXPECT_THAT(calls_, ElementsAre("a created", "a before 0"));
  EXPECT_TRUE(base.stopped());
  EXPECT_THAT(base.acts(), IsEmpty());
}

TEST_F(HookedSessionTest, TheEndOfTheRunIsAGoodEndWithoutAfterRun) {
  FakeSession::Options options;
  options.total_steps = 1;
  FakeSession base(options);
  RecordingHook a(&calls_);
  auto session = Open(&base, {&a});
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_EQ((*session)->Run(op_).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_THAT(calls_, ElementsAre("a created", "a before 0", "a after 1", "a before 1", "a end"));
}

// MS-15.
TEST_F(HookedSessionTest, FailingHookIsNamedAndStopsTheSession) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.failing_call = "after 2";
  auto session = Open(&base, {&a, &b});
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_EQ((*session)->Run(op_).status(), absl::InternalError("hook a: broken"));
  // b is not called for step 2, and no hook's End is called.
  EXPECT_EQ(calls_.back(), "a after 2");
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_TRUE(base.stopped());
  EXPECT_THAT(base.acts(), IsEmpty()) << "the run is not ended";
  EXPECT_EQ((*session)->Run(op_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*session)->Close(), absl::InternalError("hook a: broken"));
  EXPECT_EQ(calls_.back(), "a after 2");
  // The hooks have not seen step 2, so the next chief shows it to them.
  EXPECT_EQ(base.NextLife().restored.step(), 1);
  EXPECT_EQ(base.NextLife().restored.unseen_size(), 1);
}

TEST_F(HookedSessionTest, ErrorBeforeTheRunStopsTheSessionToo) {
  FakeSession base;
  RecordingHook a(&calls_);
  a.failing_call = "before 1";
  auto session = Open(&base, {&a});
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_EQ((*session)->Run(op_).status(), absl::InternalError("hook a: broken"));
  EXPECT_TRUE(base.stopped());
  EXPECT_EQ(base.newest(), 1) << "the step before which it failed is not made";
}

TEST_F(HookedSessionTest, AfterCreateErrorLeavesTheSessionOpen) {
  FakeSession base;
  RecordingHook a(&calls_);
  a.failing_call = "created";
  EXPECT_EQ(Open(&base, {&a}).status(), absl::InternalError("hook a: broken"));
  EXPECT_FALSE(base.closed());
}

// MS-14: this library does not distinguish StopIteration from OutOfRange.
TEST_F(HookedSessionTest, OutOfRangeOfAHookIsACleanEnd) {
  FakeSession base;
  RecordingHook a(&calls_);
  a.failing_call = "after 1";
  a.error = absl::OutOfRangeError("no more");
  auto session = Open(&base, {&a});
  EXPECT_EQ((*session)->Run(op_).status(), absl::OutOfRangeError("hook a: no more"));
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_EQ(calls_.back(), "a end");
  EXPECT_THAT(base.acts(), ElementsAre("stop 1: hook a: no more", "close"));
}

TEST_F(HookedSessionTest, EndIsNotCalledWhenTheLoopsOwnCodeFailed) {
  FakeSession base;
  RecordingHook a(&calls_);
  auto session = Open(&base, {&a});
  (*session)->SetLoopStatus(absl::InternalError("the loop"));
  (*session)->SetLoopStatus(absl::OkStatus());
  EXPECT_EQ((*session)->Close(), absl::InternalError("the loop"));
  EXPECT_THAT(calls_, ElementsAre("a created"));
  EXPECT_TRUE(base.stopped());
  EXPECT_FALSE(base.closed());
}

TEST_F(HookedSessionTest, EndIsNotCalledForARunThatFailed) {
  FakeSession base;
  RecordingHook a(&calls_);
  auto session = Open(&base, {&a});
  base.set_failure(absl::InvalidArgumentError("the loss is not finite"));
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_EQ((*session)->Close(), absl::InvalidArgumentError("the loss is not finite"));
  EXPECT_THAT(calls_, ElementsAre("a created"));
}

TEST_F(HookedSessionTest, ExceptionOfAHookIsItsError) {
  FakeSession base;
  RecordingHook a(&calls_);
  a.after_run = [](RunContext&, const RunValues&) { throw std::out_of_range("stod"); };
  auto session = Open(&base, {&a});
  EXPECT_EQ((*session)->Run(op_).status(), absl::InternalError("hook a: exception: stod"));
  EXPECT_TRUE(base.stopped());
}

TEST_F(HookedSessionTest, ExceptionOfAStateIsAnError) {
  class Throwing : public Hook {
   public:
    std::string name() const override { return "Throwing"; }
    std::string State() const override { throw std::out_of_range("at"); }
  } hook;
  Hook* const hooks[] = {&hook};
  EXPECT_EQ(StatesOf(hooks).status(), absl::InternalError("hook Throwing: exception: at"));
  // If the checkpoint does not contain the hook, the next chief asks the hook whether it keeps state.
  FakeSession base;
  RecordingHook a(&calls_);
  FakeSession::Options killed;
  a.after_run = [&](RunContext&, const RunValues&) { killed = base.NextLife(); };
  auto session = Open(&base, {&a});
  ASSERT_TRUE((*session)->Run(op_).ok());
  FakeSession next(killed);
  EXPECT_TRUE(absl::IsInternal(Open(&next, {&hook}).status()));
}

TEST_F(HookedSessionTest, OutOfRangeBeforeTheFirstRunIsAnError) {
  for (const char* call : {"begin", "created"}) {
    FakeSession base;
    RecordingHook a(&calls_);
    a.failing_call = call;
    a.error = absl::OutOfRangeError("no more");
    Hook* const hooks[] = {&a};
    absl::Status status = BeginHooks(hooks);
    if (status.ok()) status = Open(&base, {&a}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
  // The run is over, and the session has reported that to the hook.
  FakeSession base;
  base.set_failure(absl::CancelledError("over"));
  RecordingHook a(&calls_);
  a.failing_call = "created";
  a.error = absl::OutOfRangeError("no more");
  EXPECT_TRUE(absl::IsOutOfRange(Open(&base, {&a}).status()));
}

TEST_F(HookedSessionTest, AnEndErrorSkipsLaterHooksAndStops) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.failing_call = "end";
  auto session = Open(&base, {&a, &b});
  EXPECT_EQ((*session)->Close(), absl::InternalError("hook a: broken"));
  EXPECT_EQ(calls_.back(), "a end");
  EXPECT_TRUE(base.stopped());
  EXPECT_FALSE(base.closed());
}

// MS-20, but End is not called twice.
TEST_F(HookedSessionTest, ASecondCloseIsAnErrorAndEndsNoHookTwice) {
  FakeSession base;
  RecordingHook a(&calls_);
  auto session = Open(&base, {&a});
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_EQ((*session)->Close().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(calls_, ElementsAre("a created", "a end"));
  EXPECT_THAT(base.acts(), ElementsAre("close"));
}

TEST_F(HookedSessionTest, ReadsWhatHooksFetchOnceAndAtTheHeldStep) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  std::vector<float> seen;
  a.before_run = [](RunContext& context) { context.Fetch("w"); };
  b.before_run = [](RunContext& context) {
    context.Fetch("w");
    context.Fetch("v");
  };
  b.after_run = [&](RunContext&, const RunValues& values) {
    EXPECT_EQ(values.fetched_step, values.result.global_step);
    EXPECT_EQ(values.fetched.size(), 2);
    seen.push_back(values.fetched.at("v").value.flat<float>()[1]);
  };
  auto session = Open(&base, {&a, &b});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_THAT(seen, ElementsAre(2, 4, 6));
  EXPECT_EQ(base.reads(), 3);
}

TEST_F(HookedSessionTest, AFetchThatFailsNamesTheHook) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  b.before_run = [](RunContext& context) { context.Fetch("bias"); };
  auto session = Open(&base, {&a, &b});
  const absl::Status status = (*session)->Run(op_).status();
  EXPECT_EQ(status, absl::InvalidArgumentError("reading bias for hook b: there is no variable bias"));
  EXPECT_TRUE(base.stopped());
}

// Gates.

TEST_F(HookedSessionTest, AHookThatGatesEveryStepHoldsEach) {
  FakeSession base;
  RecordingHook a(&calls_);
  auto session = Open(&base, {&a});
  EXPECT_EQ(base.newest(), 0) << "BeforeRun may end the run, or assign";
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_EQ(base.newest(), 1);
  EXPECT_THAT(base.calls(), ElementsAre("state 0", "allow 0", "state 1"));
}

TEST_F(HookedSessionTest, WhatHooksAreCalledMustFitIntoACheckpoint) {
  FakeSession base;
  RecordingHook a(&calls_, "caf\xe9");
  const absl::Status status = Open(&base, {&a}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("caf\\xe9"));
}

TEST_F(HookedSessionTest, AnAssignThatTheCheckpointHasIsNotMadeAgain) {
  const auto assign = [](RunContext& context, const RunValues&) {
    ASSERT_TRUE(context.session().Assign({NamedFloats("w", {}, {7}).value()}).ok());
  };
  ExpectNotMadeAgain(assign, "assign");
}

TEST_F(HookedSessionTest, AChangeThatTheCheckpointHasIsNotMadeAgain) {
  const auto change = [](RunContext& context, const RunValues&) {
    ASSERT_TRUE(context.session().ChangeLearningRate(0.5f).ok());
  };
  ExpectNotMadeAgain(change, "change");
}

TEST_F(HookedSessionTest, HooksThatOnlyLookMayLagBySixtyFourSteps) {
  FakeSession base;
  RecordingHook a(&calls_);
  a.gates = std::set<int64_t>();
  auto session = Open(&base, {&a});
  EXPECT_THAT(base.calls(), ElementsAre("state 0", "allow 64"));
  for (int i = 0; i < 15; ++i) ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_EQ(base.calls().back(), "state 15") << "a lock for each step would cost more than a few steps of lag";
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_EQ(base.calls().back(), "allow 80");
}

TEST_F(HookedSessionTest, TheRunIsHeldAtTheNextStepAtWhichAnyHookGates) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.gates = std::set<int64_t>{10, 200};
  b.gates = std::set<int64_t>{4, 10};
  std::vector<int64_t> newest;
  const auto note = [&](RunContext&, const RunValues& values) { newest.push_back(base.newest()); };
  a.after_run = note;
  auto session = Open(&base, {&a, &b});
  for (int i = 0; i < 11; ++i) ASSERT_TRUE((*session)->Run(op_).ok());
  // At steps 4 and 10 no step is ahead of the hooks.
  EXPECT_THAT(newest, ElementsAre(4, 4, 4, 4, 10, 10, 10, 10, 10, 10, 75));
}

TEST_F(HookedSessionTest, AHookThatGatesAtTheLastStepOfTheLagHoldsIt) {
  FakeSession base;
  RecordingHook a(&calls_);
  a.gates = std::set<int64_t>{64};
  ASSERT_TRUE(Open(&base, {&a}).ok());
  EXPECT_EQ(base.calls().back(), "allow 63");
}

TEST_F(HookedSessionTest, WithoutHooksTheRunIsFollowedAllTheSame) {
  FakeSession base;
  auto session = Open(&base, {});
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_THAT(base.calls(), ElementsAre("state 0", "allow 64", "state 1"));
}

TEST_F(HookedSessionTest, AGatingLoopDecidesBetweenRuns) {
  FakeSession base;
  RecordingHook a(&calls_);
  a.gates = std::set<int64_t>();
  auto session = Open(&base, {&a}, /*gate_loop=*/true);
  EXPECT_EQ(base.newest(), 0);
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_EQ(base.newest(), 1);
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_EQ(base.newest(), 2);
  ASSERT_TRUE((*session)->RequestStop("the loop has had enough").ok());
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_EQ(base.newest(), 2);
  EXPECT_THAT(base.calls(),
              ElementsAre("state 0", "allow 0", "state 1", "allow 1", "state 2", "stop 2: the loop has had enough"));
}

TEST_F(HookedSessionTest, ALoopSeesAStepUntilItHasHandledIt) {
  HookedSession::Options options;
  options.gate_loop = true;
  options.loop_keeps_states = true;
  // The loop doubles w after each step. It is killed at the fourth step: before it assigns, after it assigns, or after
  // KeepStates.
  for (const int killed : {1, 2, 3}) {
    FakeSession base;
    RecordingHook a(&calls_);
    a.gates = std::set<int64_t>();
    a.state = "1";
    options.hooks = {&a};
    options.gate = &base;
    auto session = HookedSession::Open(&base, options);
    ASSERT_TRUE(session.ok()) << session.status();
    const auto deal = [&](HookedSession& loop, FakeSession& run, RecordingHook& hook, int until) {
      const auto step = loop.Run(op_);
      ASSERT_TRUE(step.ok()) << step.status();
      if (until < 2) return;
      const int64_t doubled = int64_t{1} << step->global_step;
      const NamedTensor w{"w", Tensor::FromValues<float>({}, {static_cast<float>(doubled)})};
      ASSERT_TRUE(loop.Assign(absl::MakeConstSpan(&w, 1)).ok());
      if (until < 3) return;
      hook.state = absl::StrCat(doubled);
      ASSERT_TRUE(loop.KeepStates().ok());
    };
    for (int step = 1; step <= 3; ++step) deal(**session, base, a, 3);
    deal(**session, base, a, killed);
    EXPECT_EQ(base.newest(), 4) << "no step begins before the next Run";

    FakeSession second(base.NextLife());
    RecordingHook again(&calls_);
    again.gates = std::set<int64_t>();
    again.state = "1";
    options.hooks = {&again};
    options.gate = &second;
    auto next = HookedSession::Open(&second, options);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(again.state, killed < 3 ? "8" : "16");
    EXPECT_EQ(*(*next)->NextStep(), killed < 3 ? 3 : 4);
    if (killed < 3) deal(**next, second, again, 3);
    EXPECT_EQ(again.state, "16");
    EXPECT_EQ(second.newest(), 4);
    EXPECT_EQ(std::count(second.calls().begin(), second.calls().end(), "assign 4"), killed == 1 ? 1 : 0);
  }
}

TEST_F(HookedSessionTest, AStopWaitsUntilTheLoopHasDealtWithTheStep) {
  FakeSession base;
  RecordingHook a(&calls_);
  a.gates = std::set<int64_t>();
  a.after_run = [](RunContext& context, const RunValues&) { context.RequestStop("enough"); };
  HookedSession::Options options;
  options.hooks = {&a};
  options.gate = &base;
  options.gate_loop = options.loop_keeps_states = true;
  auto session = HookedSession::Open(&base, options);
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_TRUE((*session)->stop_requested());
  EXPECT_THAT(base.acts(), IsEmpty());
  ASSERT_TRUE((*session)->KeepStates().ok());
  EXPECT_THAT(base.acts(), ElementsAre(StartsWith("stop 1: ")));
}

TEST_F(HookedSessionTest, ALoopsChangeOfSettingsIsMadeOnce) {
  FakeSession base;
  HookedSession::Options options;
  RecordingHook a(&calls_);
  a.gates = std::set<int64_t>();
  a.state = "1";
  options.hooks = {&a};
  options.gate = &base;
  options.gate_loop = options.loop_keeps_states = true;
  auto session = HookedSession::Open(&base, options);
  ASSERT_TRUE((*session)->Run(op_).ok());
  ASSERT_TRUE((*session)->ChangeLearningRate(0.5f).ok());
  EXPECT_THAT(base.acts(), ElementsAre("change 1"));
  // The chief is killed before the loop has processed the step. The newest checkpoint has the change.
  FakeSession second(base.NextLife());
  options.gate = &second;
  session = HookedSession::Open(&second, options);
  EXPECT_EQ((*session)->Run(op_)->global_step, 1);
  ASSERT_TRUE((*session)->ChangeLearningRate(0.5f).ok());
  EXPECT_THAT(second.acts(), IsEmpty());
  ASSERT_TRUE((*session)->ChangeLearningRate(0.25f).ok());
  EXPECT_THAT(second.acts(), ElementsAre("change 1"));
}

TEST_F(HookedSessionTest, AWorkersLoopKeepsNoStates) {
  FakeSession base(Worker({1000, 2000}));
  HookedSession::Options options;
  options.gate_loop = options.loop_keeps_states = true;
  auto session = HookedSession::Open(&base, options);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE((*session)->Run(op_).ok());
    EXPECT_TRUE((*session)->KeepStates().ok());
  }
}

TEST_F(HookedSessionTest, ALoopThatKeepsNoStatesIsRefusedMoreSteps) {
  FakeSession base;
  HookedSession::Options options;
  options.gate = &base;
  options.gate_loop = options.loop_keeps_states = true;
  auto session = HookedSession::Open(&base, options);
  for (int i = 0; i < HookedSession::kMaxLag; ++i) ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*session)->Run(op_).status()));
  ASSERT_TRUE((*session)->KeepStates().ok());
  EXPECT_TRUE((*session)->Run(op_).ok());
}

// States.

TEST_F(HookedSessionTest, RestartShowsTheUnseenSteps) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.gates = b.gates = std::set<int64_t>{3};
  a.state = "0";
  a.after_run = [&](RunContext&, const RunValues& values) { a.state = absl::StrCat(values.result.global_step); };
  auto session = Open(&base, {&a, &b});
  ASSERT_TRUE((*session)->Run(op_).ok());
  // The chief is killed after the hooks have seen step 1 of 3.
  const FakeSession::Options next = base.NextLife();
  EXPECT_EQ(next.step, 3);
  FakeSession second(next);
  std::vector<std::string> calls;
  RecordingHook a2(&calls, "a"), b2(&calls, "b");
  a2.gates = b2.gates = std::set<int64_t>{3};
  a2.state = "0";
  auto again = Open(&second, {&a2, &b2});
  ASSERT_TRUE(again.ok()) << again.status();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*again)->Run(op_).ok());
  EXPECT_THAT(calls, ElementsAre("a restored 1", "a created", "b created", "a before 1", "b before 1", "a after 2",
                                 "b after 2", "a before 2", "b before 2", "a after 3", "b after 3", "a before 3",
                                 "b before 3", "a after 4", "b after 4"));
  EXPECT_EQ(second.calls()[0], "state 1");
}

TEST_F(HookedSessionTest, ALifeWithoutAStateBeginsWithTheInitialOnes) {
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.state = "0";
  a.after_run = [&](RunContext&, const RunValues& values) { a.state = absl::StrCat(values.result.global_step); };
  for (const bool seen_another : {false, true}) {
    // The run recovers from a checkpoint that was written before the hooks had a session.
    FakeSession base;
    calls_.clear();
    HookedSession::Options options;
    options.hooks = {&a, &b};
    options.initial_states = {"0", ""};
    options.gate = &base;
    auto session = HookedSession::Open(&base, std::move(options));
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(calls_[0], seen_another ? "a restored 0" : "a created");
    ASSERT_TRUE((*session)->Run(op_).ok());
    EXPECT_EQ(a.state, "1");
  }
}

TEST_F(HookedSessionTest, AStateWithoutItsHookIsRefused) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.state = "x";
  ASSERT_TRUE(Open(&base, {&a, &b}).ok());
  FakeSession second(base.NextLife());
  RecordingHook c(&calls_, "c");
  c.state = "y";
  const absl::Status status = Open(&second, {&b, &c}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("a state of a, not here now"));
  EXPECT_THAT(status.message(), HasSubstr("no state of c, needed here. Continue with the hooks of before"));
  EXPECT_THAT(second.calls(), IsEmpty());
}

TEST_F(HookedSessionTest, HooksMayDifferAfterAGoodEnd) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.state = "x";
  b.state = "1";
  ASSERT_TRUE(Open(&base, {&a, &b}).ok());
  FakeSession::Options after = base.NextLife();
  after.may_change_program = true;
  FakeSession second(after);
  RecordingHook b2(&calls_, "b"), c(&calls_, "c");
  c.state = "y";
  const auto session = Open(&second, {&b2, &c});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(b2.state, "1");
  EXPECT_EQ(c.state, "y");
  EXPECT_EQ(second.calls()[0], "no longer has a, has the new c");
}

TEST_F(HookedSessionTest, HooksThatOnlyLookMayComeAndGo) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "b");
  a.state = "x";
  a.only_looks = true;
  ASSERT_TRUE(Open(&base, {&a, &b}).ok());
  FakeSession second(base.NextLife());
  RecordingHook c(&calls_, "c");
  c.state = "y";
  c.only_looks = true;
  const auto session = Open(&second, {&b, &c});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(c.state, "y");
}

TEST_F(HookedSessionTest, HooksThatKeepNothingMayComeAndGo) {
  FakeSession base;
  RecordingHook a(&calls_, "a");
  ASSERT_TRUE(Open(&base, {&a}).ok());
  FakeSession second(base.NextLife());
  RecordingHook b(&calls_, "b");
  EXPECT_TRUE(Open(&second, {&b}).ok());
}

TEST_F(HookedSessionTest, TwoHooksOfOneNameMustNotKeepAState) {
  FakeSession base;
  RecordingHook a(&calls_, "a"), b(&calls_, "a");
  EXPECT_TRUE(Open(&base, {&a, &b}).ok());
  b.state = "x";
  const absl::Status status = Open(&base, {&a, &b}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("two hooks are named a"));
}

TEST_F(HookedSessionTest, AStateThatAHookRefusesNamesIt) {
  FakeSession base;
  RecordingHook a(&calls_, "a");
  a.state = "x";
  ASSERT_TRUE(Open(&base, {&a}).ok());
  FakeSession second(base.NextLife());
  a.failing_call = "restored x";
  EXPECT_EQ(Open(&second, {&a}).status(), absl::InternalError("hook a: broken"));
}

// Workers.

TEST_F(HookedSessionTest, WorkerRecoveryCallsAfterCreateAgain) {
  FakeSession base(Worker({3, 5}));
  RecordingHook a(&calls_);
  ASSERT_TRUE(BeginHooks({&a}).ok());
  auto session = Open(&base, {&a});
  ASSERT_TRUE((*session)->Run(op_).ok());
  base.FailNextRun(absl::UnavailableError("the chief is gone"));
  EXPECT_EQ((*session)->Run(op_).status(), absl::UnavailableError("the chief is gone"));
  EXPECT_FALSE(base.closed());
  FakeSession recovered(Worker({4}));
  auto again = Open(&recovered, {&a});
  ASSERT_TRUE((*again)->Run(op_).ok());
  EXPECT_EQ((*again)->Run(op_).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE((*again)->Close().ok());
  EXPECT_THAT(calls_, ElementsAre("a begin", "a created", "a before 2", "a after 3", "a before 4", "a created",
                                  "a before 3", "a after 4", "a end"))
      << "before is the step of the block that the worker holds";
}

TEST_F(HookedSessionTest, OnAWorkerAStopEndsItsLoopAlone) {
  FakeSession base(Worker({1, 1}));
  RecordingHook a(&calls_);
  a.after_run = [](RunContext& context, const RunValues&) { context.RequestStop("enough"); };
  auto session = Open(&base, {&a});
  ASSERT_TRUE((*session)->Run(op_).ok());
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_THAT(base.calls(), IsEmpty());
}

TEST_F(HookedSessionTest, AWorkersHookErrorDoesNotEndTheRun) {
  FakeSession base(Worker({1, 1}));
  RecordingHook a(&calls_);
  a.failing_call = "after 1";
  auto session = Open(&base, {&a});
  EXPECT_EQ((*session)->Run(op_).status(), absl::InternalError("hook a: broken"));
  EXPECT_THAT(base.calls(), ElementsAre("close"));
}

TEST_F(HookedSessionTest, AWorkersHookLeavesLossToRecovery) {
  FakeSession base(Worker({1, 1}));
  RecordingHook a(&calls_);
  a.before_run = [](RunContext& context) { context.Fetch("w"); };
  auto session = Open(&base, {&a});
  base.FailNextRead(absl::AbortedError("the chief was restarted"));
  EXPECT_EQ((*session)->Run(op_).status().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(base.closed());
}

}  // namespace
}  // namespace lockstep::train
