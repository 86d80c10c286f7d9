// Measures how long a heartbeat takes while workers join with a model of 100,000 variables, which is either the run's
// model or a different one. `longest_ms` is the longest heartbeat; `opened` counts the joins that were answered
// meanwhile.
//   bazel run //server/chief:open_session_benchmark
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/contract/testing/declaration.h"
#include "lockstep/server/chief/chief.h"

namespace lockstep {
namespace {

constexpr int kVariables = 100000;

v1::OpenSessionRequest Request(const std::string& worker) {
  v1::OpenSessionRequest request;
  request.set_worker(worker);
  for (int i = 0; i < kVariables; ++i) {
    v1::VariableSpec* const variable = request.mutable_model()->add_variables();
    variable->set_name(absl::StrCat("block", i / 10, "/layer", i % 10, "/kernel"));
    variable->set_dtype(v1::DT_FLOAT);
    variable->add_shape(4);
    variable->set_trainable(true);
    variable->mutable_initializer()->mutable_glorot();
  }
  CompleteDeclaration(&request);
  return request;
}

void HeartbeatsBesideJoins(benchmark::State& state, bool same_model) {
  Chief::Options options;
  options.clock = Clock::Real();
  options.config.mutable_training()->set_steps(1);
  options.config.mutable_optimizer()->mutable_sgd();
  ApplyDefaults(&options.config);
  const std::unique_ptr<Chief> chief = Chief::Create(std::move(options)).value();
  v1::OpenSessionRequest request = Request("worker-0");
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(chief->sessions()->OpenSession(request)->session_id());
  heartbeat.set_generation(chief->generation());
  request.set_worker("worker-1");
  if (!same_model) request.mutable_model()->mutable_variables(kVariables - 1)->set_shape(0, 5);

  std::atomic<bool> done{false};
  std::atomic<int64_t> opened{0};
  std::thread joiner([&] {
    while (!done) {
      CHECK_EQ(chief->sessions()->OpenSession(request).ok(), same_model);
      ++opened;
    }
  });
  absl::Duration longest;
  for (auto _ : state) {
    const absl::Time start = absl::Now();
    CHECK(chief->sessions()->Heartbeat(heartbeat).ok());
    longest = std::max(longest, absl::Now() - start);
    state.PauseTiming();
    absl::SleepFor(absl::Milliseconds(1));
    state.ResumeTiming();
  }
  done = true;
  joiner.join();
  state.counters["longest_ms"] = absl::ToDoubleMilliseconds(longest);
  state.counters["opened"] = static_cast<double>(opened);
}

BENCHMARK_CAPTURE(HeartbeatsBesideJoins, same_model, true)->Iterations(2000)->UseRealTime();
BENCHMARK_CAPTURE(HeartbeatsBesideJoins, another_model, false)->Iterations(2000)->UseRealTime();

}  // namespace
}  // namespace lockstep
