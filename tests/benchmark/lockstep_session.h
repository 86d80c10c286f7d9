#ifndef LOCKSTEP_TESTS_BENCHMARK_LOCKSTEP_SESSION_H_
#define LOCKSTEP_TESTS_BENCHMARK_LOCKSTEP_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/periodic_task.h"
#include "common/client/chief_client.h"
#include "proto/config.pb.h"
#include "proto/variable.pb.h"
#include "tests/benchmark/exchange.h"

namespace lockstep {
namespace benchmark {

// A configuration for a chief: SGD, as many slots as workers, no end, no lease that could run out between two turns.
RunConfig EndlessRun(int slots);

// A chief and its gRPC server.
absl::StatusOr<std::unique_ptr<ExchangeServer>> ServeLockstep(const RunConfig& config, const ExchangeSpec& spec);

// One worker's session with a chief, which does as many steps as it is told. For one thread.
class LockstepSession {
 public:
  // Sends reports and gradients of the block.
  using Compute = std::function<absl::Status(const StepChannel::Assignment&)>;

  static absl::StatusOr<std::unique_ptr<LockstepSession>> Open(std::unique_ptr<ChiefClient> client,
                                                               const ModelSpec& model, int index);

  StepChannel* channel() { return channel_.get(); }

  // The first worker gets tokens for several slots; it steps alone until there is one for each.
  absl::Status AwaitTheOthers(const Compute& compute);
  // The next n steps.
  absl::Status Step(int n, const Compute& compute);

 private:
  LockstepSession() = default;

  std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<StepChannel> channel_;
  StepChannel::Assignment assignment_;
  int64_t target_ = 0;
  HeartbeatRequest heartbeat_;
  // As every worker: they also keep the connection alive between the turns.
  std::unique_ptr<PeriodicTask> heartbeats_;
};

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_LOCKSTEP_SESSION_H_
