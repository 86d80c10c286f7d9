#include "lockstep/train/hooks/monitors/monitor_hook_adapter.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/testing/fake_session.h"
#include "lockstep/train/testing/hooked_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecordingMonitor : public Monitor {
 public:
  RecordingMonitor(std::vector<std::string>* calls, std::string name) : calls_(calls), name_(name) {}

  std::string name() const override { return name_; }
  bool run_on_all_workers() const override { return on_all_workers; }
  absl::Status Begin(absl::optional<int64_t> max_steps) override {
    Note("begin");
    return Monitor::Begin(max_steps);
  }
  absl::Status End(Session& session) override {
    Note("end");
    return Monitor::End(session);
  }
  absl::StatusOr<std::vector<std::string>> StepBegin(int64_t step) override {
    Note(absl::StrCat("step begin ", step));
    const auto base = Monitor::StepBegin(step);
    if (!base.ok()) return base;
    return fetches;
  }
  absl::StatusOr<bool> StepEnd(int64_t step, const RunValues& values) override {
    Note(absl::StrCat("step end ", step));
    const auto base = Monitor::StepEnd(step, values);
    if (!base.ok()) return base;
    fetched = values.fetched.size();
    return step == stop_at;
  }
  absl::Status PostStep(int64_t step, Session& session) override {
    Note(absl::StrCat("post step ", step));
    return Monitor::PostStep(step, session);
  }
  bool GatesAt(int64_t step) const override { return step == gates_at; }
  bool OnlyLooks() const override { return only_looks; }
  std::string State() const override { return state; }
  absl::Status SetState(absl::string_view text) override {
    state = std::string(text);
    return absl::OkStatus();
  }

  bool on_all_workers = false;
  bool only_looks = false;
  int64_t stop_at = -1;
  int64_t gates_at = -1;
  size_t fetched = 0;
  std::vector<std::string> fetches;
  std::string state;

 private:
  void Note(const std::string& call) { calls_->push_back(absl::StrCat(name_, " ", call)); }

  std::vector<std::string>* const calls_;
  const std::string name_;
};

class MonitorHookAdapterTest : public ::testing::Test {
 protected:
  static std::unique_ptr<MonitorHookAdapter> Make(std::vector<Monitor*> monitors, bool is_chief = true) {
    MonitorHookAdapterOptions options;
    options.monitors = std::move(monitors);
    options.is_chief = is_chief;
    return *MonitorHookAdapter::Create(options);
  }

  std::vector<std::string> calls_;
};

TEST_F(MonitorHookAdapterTest, CallsMonitorsInTheOrderOfTheirProtocol) {
  RecordingMonitor a(&calls_, "a"), b(&calls_, "b");
  b.stop_at = 1;
  a.fetches = {"w"};
  const auto hook = Make({&a, &b});
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.RunToTheEnd().ok());
  ASSERT_TRUE(run.Close().ok());
  EXPECT_THAT(calls_, ElementsAre("a begin", "b begin", "a step begin 1", "b step begin 1", "a step end 1",
                                  "b step end 1", "a post step 1", "b post step 1", "a end", "b end"));
  EXPECT_EQ(run.base().stop_reason(), "hook MonitorHookAdapter: monitor b asked for the end");
  EXPECT_EQ(a.fetched, 1);
}

// MON-16.
TEST_F(MonitorHookAdapterTest, TheStepIsTheLastGlobalStepAndOne) {
  RecordingMonitor a(&calls_, "a");
  const auto hook = Make({&a});
  ASSERT_TRUE(hook->Begin().ok());
  FakeSession session;
  calls_.clear();
  for (const int64_t step : {10, 15}) {
    RunContext context(&session);
    context.set_global_step(step);
    ASSERT_TRUE(hook->BeforeRun(context).ok());
    ASSERT_TRUE(hook->AfterRun(context, RunValues()).ok());
  }
  EXPECT_THAT(calls_, ElementsAre("a step begin 11", "a step end 11", "a post step 11", "a step begin 16",
                                  "a step end 16", "a post step 16"));
}

// GA-10.
TEST_F(MonitorHookAdapterTest, OnAWorkerOnlyThoseForAllWorkersAreCalled) {
  RecordingMonitor a(&calls_, "a"), b(&calls_, "b");
  b.on_all_workers = true;
  const auto hook = Make({&a, &b}, /*is_chief=*/false);
  FakeSession::Options worker;
  worker.chief = false;
  worker.blocks.resize(1);
  worker.blocks[0].global_step = 1;
  HookedRun run({hook.get()}, worker);
  ASSERT_TRUE(run.Run().ok());
  EXPECT_THAT(calls_, ElementsAre("b begin", "b step begin 1", "b step end 1", "b post step 1"));
}

TEST_F(MonitorHookAdapterTest, GatesWhereAnyMonitorDoes) {
  RecordingMonitor a(&calls_, "a"), b(&calls_, "b");
  a.gates_at = 4;
  b.gates_at = 7;
  const auto hook = Make({&a, &b});
  EXPECT_TRUE(hook->GatesAt(4));
  EXPECT_TRUE(hook->GatesAt(7));
  EXPECT_FALSE(hook->GatesAt(5));
}

// Continues the run of `base` with a restarted chief and the monitors of `hook`.
absl::Status Continue(const FakeSession& base, MonitorHookAdapter* hook) {
  return HookedRun({hook}, base.NextLife()).status();
}

TEST_F(MonitorHookAdapterTest, KeepsAndNamesTheStatesOfItsMonitors) {
  RecordingMonitor a(&calls_, "a"), b(&calls_, "b"), c(&calls_, "c");
  a.state = "x";
  c.state = "y";
  const auto hook = Make({&a, &b, &c});
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run().ok());
  RecordingMonitor a2(&calls_, "a"), b2(&calls_, "b"), c2(&calls_, "c"), d(&calls_, "d");
  ASSERT_TRUE(Continue(run.base(), Make({&a2, &b2, &c2}).get()).ok());
  EXPECT_EQ(a2.state, "x");
  EXPECT_EQ(b2.state, "");
  EXPECT_EQ(c2.state, "y");
  RecordingMonitor a3(&calls_, "a"), a4(&calls_, "a"), c4(&calls_, "c");
  EXPECT_THAT(Continue(run.base(), Make({&a3}).get()).message(), HasSubstr("a state of monitor c, not here now"));
  d.state = "new";
  EXPECT_THAT(Continue(run.base(), Make({&a4, &c4, &d}).get()).message(), HasSubstr("no state of monitor d, needed"));
}

TEST_F(MonitorHookAdapterTest, MonitorsThatOnlyLookMayComeAndGo) {
  RecordingMonitor a(&calls_, "a"), b(&calls_, "b");
  a.state = "x";
  b.state = "y";
  b.only_looks = true;
  const auto hook = Make({&a, &b});
  EXPECT_FALSE(hook->OnlyLooks());
  EXPECT_TRUE(Make({&b})->OnlyLooks());
  HookedRun run({hook.get()});
  ASSERT_TRUE(run.Run().ok());
  RecordingMonitor a2(&calls_, "a"), c(&calls_, "c");
  c.state = "z";
  c.only_looks = true;
  const absl::Status continued = Continue(run.base(), Make({&a2, &c}).get());
  EXPECT_TRUE(continued.ok()) << continued;
}

TEST_F(MonitorHookAdapterTest, TwoMonitorsOfOneNameMustNotKeepAState) {
  RecordingMonitor a(&calls_, "a"), b(&calls_, "a");
  EXPECT_TRUE(MonitorHookAdapter::Create({{&a, &b}}).ok());
  a.state = b.state = "x";
  EXPECT_THAT(MonitorHookAdapter::Create({{&a, &b}}).status().message(), HasSubstr("are named a"));
}

TEST_F(MonitorHookAdapterTest, ErrorsNameTheMonitor) {
  RecordingMonitor a(&calls_, "a");
  const auto hook = Make({&a});
  ASSERT_TRUE(hook->Begin().ok());
  EXPECT_EQ(hook->Begin(), absl::InvalidArgumentError("monitor a: Begin was called twice without End"));
}

}  // namespace
}  // namespace lockstep::train
