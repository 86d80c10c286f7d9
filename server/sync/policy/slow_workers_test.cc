// Tests the cost of a slow or hung worker to a run: the machine and its policy run event by event on a simulated clock,
// with simulated workers.
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lockstep/server/sync/machine/step_machine.h"
#include "lockstep/server/sync/policy/deterministic.h"

namespace lockstep {
namespace {

constexpr int64_t kGeneration = 1;
constexpr absl::Duration kLease = absl::Seconds(5);
constexpr absl::Duration kSlot = absl::Milliseconds(10);
// The round-trip time for each token, regardless of the number of slots.
constexpr absl::Duration kToken = absl::Microseconds(200);
const absl::Time kStart = absl::FromUnixSeconds(1000);

// Returns the time at which a worker finishes its work, given the start time and the time that a good worker takes for
// the work; infinite if it never finishes.
using Speed = std::function<absl::Time(absl::Time, absl::Duration)>;

Speed Steady(double part) {
  return [part](absl::Time now, absl::Duration work) { return now + work / part; };
}

// Returns the speed of a worker that runs only for the first `on` of every `period`.
Speed DutyCycle(absl::Duration on, absl::Duration period) {
  return [on, period](absl::Time now, absl::Duration work) {
    while (true) {
      const absl::Time begin = absl::UnixEpoch() + absl::Floor(now - absl::UnixEpoch(), period);
      if (now < begin + on) {
        const absl::Duration left = begin + on - now;
        if (work <= left) return now + work;
        work -= left;
      }
      now = begin + period;
    }
  };
}

// Returns the speed of a worker that runs normally until `at`, then hangs while its heartbeats continue.
Speed HangsAt(absl::Time at) {
  return [at](absl::Time now, absl::Duration work) { return now + work <= at ? now + work : absl::InfiniteFuture(); };
}

// A simulated run of a machine with workers of these speeds.
class ModelledRun {
 public:
  ModelledRun(int64_t slots, double audit, std::vector<Speed> speeds) : slots_(slots), speeds_(std::move(speeds)) {
    StepMachine::Options options;
    options.generation = kGeneration;
    options.total_steps = std::numeric_limits<int64_t>::max();
    options.lease = kLease;
    DeterministicPolicy::Options policy;
    policy.queue.slots = slots;
    policy.queue.lease = kLease;
    policy.audit.enabled = audit > 0;
    policy.audit.fraction = audit;
    machine_ = std::make_unique<StepMachine>(options, std::make_unique<DeterministicPolicy>(policy, 0), 0);
    for (uint64_t session = 1; session <= speeds_.size(); ++session) {
      Take(machine_->OnConnected(session, absl::StrCat("worker-", session), now_));
      Send(session, {}, false);
    }
    At(now_ + kTick, [this] { Tick(); });
  }

  // Runs until this many steps have been taken and this much time has passed.
  void Run(int64_t steps, absl::Duration time) {
    const absl::Time limit = now_ + absl::Hours(1);
    while (machine_->step() < steps || now_ < kStart + time) {
      ASSERT_FALSE(events_.empty());
      const auto first = events_.begin();
      now_ = first->first;
      const std::function<void()> event = std::move(first->second);
      events_.erase(first);
      event();
      ASSERT_LT(now_, limit) << "it stands still at step " << machine_->step();
    }
  }
  int64_t step() const { return machine_->step(); }
  double steps_per_second() const { return static_cast<double>(step()) / absl::ToDoubleSeconds(now_ - kStart); }
  v1::AuditStatus audit() const {
    v1::RunStatus status;
    machine_->FillStatus(&status);
    return status.audit();
  }
  // Returns the number of slots that the worker was the first to compute.
  int64_t slots_of(uint64_t session) { return new_slots_[session]; }
  void set_speed(uint64_t session, Speed speed) { speeds_[session - 1] = std::move(speed); }
  absl::Time now() const { return now_; }

 private:
  static constexpr absl::Duration kTick = absl::Milliseconds(100);

  void At(absl::Time time, std::function<void()> event) {
    if (time < absl::InfiniteFuture()) events_.emplace(time, std::move(event));
  }
  void Tick() {
    ++ticks_;
    // Heartbeats continue whatever the computing thread does.
    if (ticks_ % 10 == 0) {
      for (uint64_t session = 1; session <= speeds_.size(); ++session) machine_->OnHeartbeat(session, now_);
    }
    Take(machine_->OnTick(now_));
    At(now_ + kTick, [this] { Tick(); });
  }
  // Lets a worker read its reply, if there is one, and compute the slots of the token in it.
  void Read(uint64_t session) {
    const auto reply = machine_->NextReply(session, now_);
    if (!reply || !reply->token) return;
    machine_->OnReplySent(session, machine_->step());
    const StepToken token = *reply->token;
    At(speeds_[session - 1](now_ + kToken, token.block.count * kSlot), [=] { Send(session, token, true); });
  }
  void Send(uint64_t session, const StepToken& token, bool contributes) {
    StepFrame frame;
    frame.session_id = session;
    frame.generation = kGeneration;
    frame.step = token.step;
    if (contributes) frame.block = token.block;
    const auto start = machine_->OnFrame(session, frame, now_);
    ASSERT_TRUE(start.ok()) << start.status();
    StepMachine::FrameResult result;
    result.end = true;
    result.wanted = start->wanted;
    for (int64_t slot = frame.block.first; start->wanted && slot < frame.block.end(); ++slot) {
      if (!covered_.insert(slot).second) continue;
      result.any_new = true;
      ++new_slots_[session];
    }
    result.summed = static_cast<int64_t>(covered_.size()) == slots_;
    const std::vector<uint64_t> digests;
    if (token.digest) result.digests = &digests;
    Take(machine_->OnSummed(session, result, now_));
  }
  void Take(const StepEffects& effects) {
    ASSERT_TRUE(effects.status.ok()) << effects.status;
    ASSERT_TRUE(effects.close.empty());
    for (const uint64_t session : effects.wake) Read(session);
    if (!effects.commit) return;
    covered_.clear();
    Take(machine_->OnCommitted(/*last=*/false, now_));
  }

  const int64_t slots_;
  std::vector<Speed> speeds_;
  absl::Time now_ = kStart;
  std::multimap<absl::Time, std::function<void()>> events_;
  int64_t ticks_ = 0;
  std::unique_ptr<StepMachine> machine_;
  std::set<int64_t> covered_;
  std::map<uint64_t, int64_t> new_slots_;
};

struct Scenario {
  const char* name;
  Speed speed;
  bool first = false;  // joins before the others
};

const Scenario kScenarios[] = {
    {"Hung", HangsAt(kStart)},
    {"HungFirst", HangsAt(kStart), /*first=*/true},
    {"Has5PercentFirst", Steady(0.05), /*first=*/true},
    {"HangsLater", HangsAt(kStart + absl::Seconds(7.003))},
    {"Has5Percent", Steady(0.05)},
    {"Has10Percent", Steady(0.1)},
    {"Has30Percent", Steady(0.3)},
    {"Has50Percent", Steady(0.5)},
    {"Has70Percent", Steady(0.7)},
    {"Has5PercentInTurns", DutyCycle(absl::Milliseconds(10), absl::Milliseconds(200))},
    {"Has10PercentInTurns", DutyCycle(absl::Milliseconds(10), absl::Milliseconds(100))},
    {"Has50PercentInLongTurns", DutyCycle(absl::Seconds(1), absl::Seconds(2))},
    // This worker alternates between computing and hanging, about every 50 steps.
    {"HangsAgainAndAgain", DutyCycle(absl::Seconds(2), absl::Seconds(3))},
    {"HangsMostOfTheTime", DutyCycle(absl::Milliseconds(60), absl::Seconds(2))},
};

class SlowWorkersTest : public ::testing::TestWithParam<std::tuple<Scenario, int64_t, int, double>> {};

// Tests the promise that docs/sync.md makes.
TEST_P(SlowWorkersTest, CostNoRunMoreThanATwentieth) {
  const auto& [scenario, slots, good, audit] = GetParam();
  std::vector<Speed> speeds(good, Steady(1));
  ModelledRun without(slots, audit, speeds);
  without.Run(1000, absl::Seconds(30));
  speeds.insert(scenario.first ? speeds.begin() : speeds.end(), scenario.speed);
  ModelledRun with(slots, audit, speeds);
  with.Run(1000, absl::Seconds(30));
  EXPECT_GE(with.steps_per_second(), 0.95 * without.steps_per_second())
      << with.audit().ShortDebugString() << "; the worker computed " << with.slots_of(scenario.first ? 1 : good + 1)
      << " of " << slots * with.step();
}

INSTANTIATE_TEST_SUITE_P(All, SlowWorkersTest,
                         ::testing::Combine(::testing::ValuesIn(kScenarios), ::testing::Values(1, 4, 6),
                                            ::testing::Values(1, 2), ::testing::Values(0, 0.2)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name, "R", std::get<1>(info.param), "Beside",
                                               std::get<2>(info.param), std::get<3>(info.param) > 0 ? "Audited" : "");
                         });

TEST(WorkerSpeedsTest, AWorkerThatRecoversGetsItsShareAgain) {
  ModelledRun run(/*slots=*/4, /*audit=*/0, {Steady(1), Steady(0.1)});
  run.Run(250, absl::Seconds(10));
  const int64_t before = run.slots_of(2);
  EXPECT_LT(before, 20);
  run.set_speed(2, Steady(1));
  run.Run(run.step() + 200, absl::ZeroDuration());
  EXPECT_GT(run.slots_of(2) - before, 250) << "of 400";
}

TEST(WorkerSpeedsTest, AWorkerOfHalfTheSpeedMakesTheRunFaster) {
  ModelledRun alone(/*slots=*/4, /*audit=*/0, {Steady(1)}), run(/*slots=*/4, /*audit=*/0, {Steady(1), Steady(0.5)});
  alone.Run(1000, absl::Seconds(30));
  run.Run(1000, absl::Seconds(30));
  EXPECT_GT(run.steps_per_second(), 1.25 * alone.steps_per_second());
}

// All workers pause together when a laptop sleeps, or between two turns of a benchmark.
TEST(WorkerSpeedsTest, APauseOfAllIsNobodysDebt) {
  const Speed pauses = DutyCycle(absl::Seconds(4), absl::Seconds(5));
  for (const int64_t slots : {2, 4}) {
    ModelledRun one(slots, /*audit=*/0, {pauses}), two(slots, /*audit=*/0, {pauses, pauses});
    one.Run(1000, absl::Seconds(60));
    two.Run(1000, absl::Seconds(60));
    EXPECT_GT(two.steps_per_second(), 1.8 * one.steps_per_second()) << slots << " slots";
  }
}

TEST(WorkerSpeedsTest, EveryAuditedSlotIsComparedOrCounted) {
  for (const auto& [part, slots] : {std::pair(1.0, 1), std::pair(1.0, 4), std::pair(0.9, 1), std::pair(0.1, 4)}) {
    ModelledRun run(slots, /*audit=*/0.2, {Steady(1), Steady(part)});
    run.Run(1000, absl::Seconds(30));
    SlotAudit::Options options;
    options.enabled = true;
    options.fraction = 0.2;
    options.slots = slots;
    int64_t audited = 0;
    for (int64_t step = 0; step < run.step(); ++step) audited += SlotAudit(options, step).slots().size();
    const v1::AuditStatus status = run.audit();
    // The copy of a worker that is too late may still be compared.
    EXPECT_GE(status.compared() + status.abandoned() + status.missed(), audited) << status.ShortDebugString();
    if (part < 0.5) continue;
    EXPECT_EQ(status.abandoned(), 0) << status.ShortDebugString();
    EXPECT_LE(status.missed(), audited / 20) << "the first worker was alone at first, and one falls behind";
  }
}

}  // namespace
}  // namespace lockstep
