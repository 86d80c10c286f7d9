#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_LOCKSTEP_SESSION_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_LOCKSTEP_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/tests/benchmark/exchange/exchange.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {
namespace benchmark {

// Returns a chief's configuration with SGD, one slot per worker, no end, and a lease that does not expire between two
// turns.
config::v1::RunSpec EndlessRun(int slots);

// Creates certificates for a chief, its workers and viewers below `directory`, and sets the spec's folders.
absl::Status MakeKits(const std::string& directory, ExchangeSpec* spec);

// A program that follows the run like train::Session. With hooks that only look (kLooks), the run may be up to 64 steps
// ahead of the program. With hooks that gate (kGates), a step begins only after the program has seen the previous one.
// A program of kind kChangesRate also changes the learning rate after each step. One of kind kAssigns sets the variable
// "logits/bias" of TrainingConfig.
enum class Follower { kNone, kLooks, kGates, kChangesRate, kAssigns };

// Starts a chief and its gRPC server.
absl::StatusOr<std::unique_ptr<ExchangeServer>> ServeLockstep(const config::v1::RunSpec& config,
                                                              const ExchangeSpec& spec,
                                                              Follower follower = Follower::kNone);

// A worker's session with a chief. Computes the requested number of steps. Must be used by only one thread.
class LockstepSession {
 public:
  // A function that sends the reports and gradients of the assigned block.
  using Compute = std::function<absl::Status(const StepChannel::Assignment&)>;

  // For `idle`, see ChiefClient::StepOptions.
  static absl::StatusOr<std::unique_ptr<LockstepSession>> Open(std::unique_ptr<ChiefClient> client,
                                                               const v1::ModelSpec& model, int index,
                                                               std::function<bool()> idle = nullptr);

  StepChannel* channel() { return channel_.get(); }

  // Computes steps until this worker's token has a single slot, which means that every worker has joined. At first, the
  // first worker gets tokens for several slots.
  absl::Status AwaitTheOthers(const Compute& compute);
  // Computes the next n steps.
  absl::Status Step(int n, const Compute& compute);
  // Computes the blocks of the next n tokens, regardless of their steps. Used with ASYNC, where no worker waits for
  // another.
  absl::Status Contribute(int n, const Compute& compute);
  // Computes the step of the current token. Needed because a worker that has finished its turn still holds a slot of
  // the next step, and slow or late workers wait for that slot.
  absl::Status TakePendingStep(const Compute& compute);
  // Returns the number of bytes that the chief has sent in the Step streams of all connected workers.
  absl::StatusOr<int64_t> BytesSent() const;

 private:
  LockstepSession() = default;

  std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<StepChannel> channel_;
  StepChannel::Assignment assignment_;
  int64_t target_ = 0;
  v1::HeartbeatRequest heartbeat_;
  // Sends heartbeats, as every worker does. They also keep the connection alive between turns.
  std::unique_ptr<PeriodicTask> heartbeats_;
};

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_LOCKSTEP_SESSION_H_
