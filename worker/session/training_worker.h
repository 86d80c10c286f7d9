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

// A worker: gets the run's configuration from the chief, builds model and input, and computes the slots that
// it is given until the run is over. When the chief goes away or enters a new generation it opens a new session and
// continues. Run is for one thread; RequestStop for any.
class TrainingWorker {
 public:
  // The worker itself sets on_heartbeat and is_paused.
  struct Options : WorkerSession::Options {
    WorkloadFactory make_workload;
    // Observes the blocks unless null. Must outlive the worker.
    BlockObserver* observer = nullptr;
  };

  // `client` must outlive the worker.
  TrainingWorker(const Options& options, ChiefClient* client);

  // Returns OK when the run is over, as its chief says, or its address file (SessionRetries says when that is
  // believed); Cancelled after RequestStop; Unavailable when the chief stayed away too long; InvalidArgument when the
  // run failed or its configuration does not work here; FailedPrecondition when the model or the data are not the
  // run's, or when the run had failed before the worker came.
  absl::Status Run();

  // WorkerSession::RequestFinish.
  absl::Status RequestFinish(const std::string& reason) { return session_.RequestFinish(reason); }

  // WorkerSession::AddSummary.
  absl::Status AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) {
    return session_.AddSummary(summary, global_step);
  }

  // Makes Run return: at once, unless the worker prepares a batch, or has begun to send a contribution, which is ended
  // first. A second call aborts the contribution, too.
  void RequestStop();

  // False while the block being computed is not wanted any more. For any thread.
  bool wanted() const { return loop_.wanted().load(std::memory_order_relaxed); }

  // Slots computed so far.
  int64_t slots_computed() const { return slots_computed_.load(std::memory_order_relaxed); }

 private:
  // Runs one session, from Connect until the stream ends.
  SessionEnd RunSession();
  // Makes what the configuration describes, unless it is the same as before.
  absl::Status Prepare(const config::v1::RunSpec& config);
  // Makes what the settings of a token change. Errors: those of Prepare; FailedPrecondition if the model is another.
  absl::StatusOr<BlockComputer*> Adapt(const v1::GradientSettings& settings);

  const std::string name_;
  const WorkloadFactory make_workload_;
  BlockObserver* const observer_;
  std::atomic<int64_t> slots_computed_{0};
  StepLoop loop_;
  WorkerSession session_;
  absl::optional<config::v1::RunSpec> config_;  // what computer_ was made for
  std::unique_ptr<BlockComputer> computer_;
  // The chief's life with which the newest session was; 0 when something else ended it, or came since, than the chief.
  int64_t generation_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_TRAINING_WORKER_H_
