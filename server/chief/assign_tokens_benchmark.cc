// What tokens cost for each frame, with more workers than there are slots for: all that is done under the lock of the
// step when nothing has changed.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "common/base/simulated_clock.h"
#include "server/chief/sync_replicas.h"
#include "server/chief/testing/frame_worker.h"

namespace lockstep {
namespace {

void AssignTokens(benchmark::State& state) {
  const int64_t slots = state.range(0), workers = state.range(1);
  OptimizerConfig optimizer;
  optimizer.mutable_sgd();
  const auto store = VariableStore::Create(FrameModel(), optimizer).value();
  store->Initialize(1);
  SimulatedClock clock;
  SyncReplicas::Options options;
  options.clock = &clock;
  options.epoch = 1;
  options.slots = slots;
  options.total_steps = 10;
  options.learning_rate.set_initial(1);
  SyncReplicas sync(std::move(options), store.get());
  std::vector<std::unique_ptr<FrameWorker>> connected;
  for (int64_t i = 1; i <= workers; ++i) {
    connected.push_back(std::make_unique<FrameWorker>(i, 1, [&](std::shared_ptr<StepListener> listener) {
      return sync.Connect(i, absl::StrCat("worker-", i), ValuePath::kHandedOver, std::move(listener));
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

}  // namespace
}  // namespace lockstep
