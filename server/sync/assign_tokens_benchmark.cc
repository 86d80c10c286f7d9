// Measures the bookkeeping of a step per frame, all of which runs under the step's lock. Its cost does not depend on
// the number of slots or workers.
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/machine/step_machine.h"
#include "lockstep/server/sync/policy/deterministic.h"
#include "lockstep/server/sync/shard/step_shard.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/server/sync/testing/frame_worker.h"

namespace lockstep {
namespace {

constexpr int64_t kGeneration = 1;

// Measures token assignment when there are more workers than slots and nothing has changed.
void AssignTokens(benchmark::State& state) {
  const int64_t slots = state.range(0), workers = state.range(1);
  config::v1::OptimizerConfig optimizer;
  optimizer.mutable_sgd();
  optimizer.mutable_learning_rate()->set_initial(1);
  const auto store = VariableStore::Create(FrameModel(), optimizer).value();
  store->Initialize(1);
  SimulatedClock clock;
  SyncReplicas::Options options;
  options.clock = &clock;
  options.machine.generation = kGeneration;
  options.machine.slots = slots;
  options.machine.total_steps = 10;
  RunEvents ignored;
  options.events = &ignored;
  SyncReplicas sync(std::move(options), std::make_unique<StepShard>(store.get(), slots), FramePolicy(slots));
  std::vector<std::unique_ptr<FrameWorker>> connected;
  for (int64_t i = 1; i <= workers; ++i) {
    connected.push_back(std::make_unique<FrameWorker>(i, kGeneration, [&](std::shared_ptr<StepListener> listener) {
      return sync.Connect(i, absl::StrCat("worker-", i), ValuePath::kInProcess, std::move(listener));
    }));
    if (!connected.back()->Ask().ok()) return state.SkipWithError("a worker was refused");
  }
  for (auto _ : state) sync.Tick();
}
BENCHMARK(AssignTokens)
    ->ArgNames({"slots", "workers"})
    ->Args({4, 12})
    ->Args({64, 256})
    ->Args({256, 1000})
    ->Unit(benchmark::kMicrosecond);

// Steps of simulated connections, run through the whole StepMachine: every worker with a token reads it and then sends
// its contribution piece by piece.
class SimulatedSteps {
 public:
  SimulatedSteps(int64_t slots, int64_t workers) : slots_(slots) {
    StepMachine::Options options;
    options.generation = kGeneration;
    options.total_steps = std::numeric_limits<int64_t>::max();
    DeterministicPolicy::Options policy;
    policy.queue.slots = slots;
    machine_ = std::make_unique<StepMachine>(options, std::make_unique<DeterministicPolicy>(policy, 0), 0);
    for (int64_t session = 1; session <= workers; ++session) {
      machine_->OnConnected(session, "worker", now_);
      Send(session, {}, /*end=*/true);
    }
  }

  // Sends one contribution. Returns the number of its frames, or 0 on error.
  int64_t Contribute(int pieces) {
    if (ready_.empty()) return 0;
    const uint64_t session = ready_.front();
    ready_.pop_front();
    const auto reply = machine_->NextReply(session, now_);
    if (!reply || !reply->token) return 1;  // the step was over before it was read
    machine_->OnReplySent(session, machine_->step());
    now_ += absl::Microseconds(10);
    for (int piece = 1; piece < pieces; ++piece) Send(session, *reply->token, /*end=*/false);
    for (int64_t slot = reply->token->block.first; slot < reply->token->block.end(); ++slot) covered_.insert(slot);
    return Send(session, *reply->token, /*end=*/true) ? pieces : 0;
  }

 private:
  bool Send(uint64_t session, const StepToken& token, bool end) {
    StepFrame frame;
    frame.session_id = session;
    frame.generation = kGeneration;
    frame.step = token.step;
    frame.block = token.block;
    const auto start = machine_->OnFrame(session, frame, now_);
    if (!start.ok()) return false;
    StepMachine::FrameResult result;
    result.end = end;
    result.wanted = result.any_new = start->wanted;
    result.summed = static_cast<int64_t>(covered_.size()) == slots_;
    const StepEffects effects = machine_->OnSummed(session, result, now_);
    if (!effects.status.ok()) return false;
    ready_.insert(ready_.end(), effects.wake.begin(), effects.wake.end());
    if (!effects.commit) return true;
    covered_.clear();
    ready_.clear();
    const StepEffects committed = machine_->OnCommitted(/*last=*/false, now_);
    ready_.insert(ready_.end(), committed.wake.begin(), committed.wake.end());
    return true;
  }

  const int64_t slots_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::unique_ptr<StepMachine> machine_;
  std::deque<uint64_t> ready_;
  std::set<int64_t> covered_;
};

void Frames(benchmark::State& state) {
  SimulatedSteps steps(state.range(0), state.range(1));
  int64_t frames = 0;
  for (auto _ : state) {
    const int64_t sent = steps.Contribute(/*pieces=*/8);
    if (sent == 0) return state.SkipWithError("a worker was refused, or none has a token");
    frames += sent;
  }
  state.SetItemsProcessed(frames);
  state.counters["us_per_frame"] =
      benchmark::Counter(static_cast<double>(frames) / 1e6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(Frames)
    ->ArgNames({"slots", "workers"})
    ->Args({256, 10})
    ->Args({256, 100})
    ->Args({256, 1000})
    ->Args({4096, 1000})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace lockstep
