#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_LOCKSTEP_SESSION_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_LOCKSTEP_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {
namespace benchmark {

// A configuration for a chief: SGD, as many slots as workers, no end, no lease that could run out between two turns.
config::v1::RunSpec EndlessRun(int slots);

// Whether a program follows the run, as train::Session does: one whose hooks only look lets it run 64 steps ahead; one
// whose hooks gate lets each step begin when it has seen the one before, and may change the learning rate or set the
// variable "logits/bias" of TrainingConfig after each.
enum class Follower { kNone, kLooks, kGates, kChangesRate, kAssigns };

// A chief and its gRPC server.
absl::StatusOr<std::unique_ptr<ExchangeServer>> ServeLockstep(const config::v1::RunSpec& config,
                                                              const ExchangeSpec& spec,
                                                              Follower follower = Follower::kNone);

// One worker's session with a chief, which takes the requested number of steps. For one thread.
class LockstepSession {
 public:
  // Sends reports and gradients of the block.
  using Compute = std::function<absl::Status(const StepChannel::Assignment&)>;

  // `idle`: ChiefClient::StepOptions.
  static absl::StatusOr<std::unique_ptr<LockstepSession>> Open(std::unique_ptr<ChiefClient> client,
                                                               const v1::ModelSpec& model, int index,
                                                               std::function<bool()> idle = nullptr);

  StepChannel* channel() { return channel_.get(); }

  // The first worker gets tokens for several slots; it steps alone until there is one for each.
  absl::Status AwaitTheOthers(const Compute& compute);
  // The next n steps.
  absl::Status Step(int n, const Compute& compute);
  // Computes the step of the current token. Workers that have finished a turn keep their slots of the next step, and a
  // slow or late worker waits for these slots.
  absl::Status TakePendingStep(const Compute& compute);

 private:
  LockstepSession() = default;

  std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<StepChannel> channel_;
  StepChannel::Assignment assignment_;
  int64_t target_ = 0;
  v1::HeartbeatRequest heartbeat_;
  // As every worker: they also keep the connection alive between the turns.
  std::unique_ptr<PeriodicTask> heartbeats_;
};

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_LOCKSTEP_SESSION_H_
