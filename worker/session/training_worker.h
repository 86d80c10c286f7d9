#ifndef LOCKSTEP_WORKER_SESSION_TRAINING_WORKER_H_
#define LOCKSTEP_WORKER_SESSION_TRAINING_WORKER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/worker/session/block/block_computer.h"
#include "lockstep/worker/session/session.h"
#include "lockstep/worker/session/step_loop.h"
#include "lockstep/worker/session/workload/workload.h"

namespace lockstep {

// A worker, which gets the run's configuration from the chief, builds the model and the input, and computes slots until
// the run is over. If the chief disappears or enters a new generation, the worker opens a new session and continues.
// Only one thread may call Run. Any thread may call the other methods.
class TrainingWorker {
 public:
  // TrainingWorker itself sets on_heartbeat and is_paused.
  struct Options : WorkerSession::Options {
    WorkloadFactory make_workload;
    // Observes the worker's blocks. May be null. Must outlive the worker.
    BlockObserver* observer = nullptr;
  };

  // `client` must outlive the worker.
  TrainingWorker(const Options& options, ChiefClient* client);

  // Returns OK if the chief or the address file says that the run is over (SessionRetries explains when the worker
  // believes the file), Cancelled after RequestStop, Unavailable if the chief was absent for too long, InvalidArgument
  // if the run failed or its configuration does not work on this machine, and FailedPrecondition if the model or the
  // data differ from the run's, or if the run had failed before the worker joined.
  absl::Status Run();

  // Calls WorkerSession::RequestFinish.
  absl::Status RequestFinish(const std::string& reason) { return session_.RequestFinish(reason); }

  // Calls WorkerSession::AddSummary.
  absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) {
    return session_.AddSummary(summary, global_step);
  }

  // Calls WorkerSession::initial_values_digest.
  std::string initial_values_digest() { return session_.initial_values_digest(); }

  // Makes Run return. Run returns immediately unless the worker is preparing a batch or has begun to send a
  // contribution; it finishes either of these first. A second call also aborts sending the contribution.
  void RequestStop();

  // Returns false while the block being computed is no longer wanted.
  bool wanted() const { return loop_.wanted().load(std::memory_order_relaxed); }

  // Returns the number of slots computed so far.
  int64_t slots_computed() const { return slots_computed_.load(std::memory_order_relaxed); }

 private:
  // Runs one session, from Connect until the stream ends.
  SessionEnd RunSession();
  // Creates the BlockComputer for a configuration, unless the configuration is the same as before.
  absl::Status Prepare(const config::v1::RunSpec& config);
  // Adapts the computer to a token's settings. Returns errors from Prepare, and FailedPrecondition if the model's
  // variables change.
  absl::StatusOr<BlockComputer*> Adapt(const v1::GradientSettings& settings);

  const std::string name_;
  const WorkloadFactory make_workload_;
  BlockObserver* const observer_;
  std::atomic<int64_t> slots_computed_{0};
  StepLoop loop_;
  WorkerSession session_;
  absl::optional<config::v1::RunSpec> config_;  // the configuration of computer_
  std::unique_ptr<BlockComputer> computer_;
  // The chief's generation in the newest session, or 0 if that session, or a later attempt to open one, was not ended
  // by the chief.
  int64_t generation_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_TRAINING_WORKER_H_
