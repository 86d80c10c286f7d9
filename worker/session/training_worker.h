#ifndef LOCKSTEP_WORKER_SESSION_TRAINING_WORKER_H_
#define LOCKSTEP_WORKER_SESSION_TRAINING_WORKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/client/chief_client.h"
#include "common/tensor/parameter_layout.h"
#include "proto/config.pb.h"
#include "proto/input.pb.h"
#include "worker/data/batch_source.h"
#include "worker/nn/model.h"
#include "worker/session/block_gradients.h"
#include "worker/session/gradient_transforms.h"
#include "worker/session/session_retries.h"

namespace lockstep {

// Hints at the three batches that most likely follow (token.step(), slot): the worker's block will be the same in the
// next step. With three, one is ready while two are prepared at once (PrefetchedBatches).
void PrefetchFollowing(const Token& token, int64_t slot, BatchSource* batches);

// A worker: gets the run's configuration from the chief, builds model and input, and computes the slots that
// it is given until the run is over. When the chief goes away or enters a new epoch it opens a new session and
// goes on. Run is for one thread; RequestStop for any.
class TrainingWorker {
 public:
  // What a worker computes with, made from the run's configuration.
  struct Task {
    std::unique_ptr<BatchSource> batches;
    std::unique_ptr<Model> model;
    // Of what the batches are made of: the chief compares it with the run's. Absent: they are read from nowhere.
    absl::optional<DataDigest> data;
  };
  using TaskFactory = std::function<absl::StatusOr<Task>(const RunConfig&)>;

  struct Options {
    // For people: shown in status and logs.
    std::string name;
    Clock* clock = nullptr;
    // Who is missing, when the chief is: its address.
    std::string chief_address;
    // How long an absent chief is looked for; the configuration's chief_wait_seconds (or 600 s before it is known)
    // when absent.
    absl::optional<absl::Duration> chief_wait;
    // No token before the global step reaches this; the configuration's when absent.
    absl::optional<int64_t> startup_delay_steps;
    TaskFactory make_task;
  };

  // `client` must outlive the worker.
  TrainingWorker(Options options, ChiefClient* client);

  // Returns OK when the run is over; Cancelled after RequestStop; Unavailable when the chief stayed away too
  // long; InvalidArgument when the run failed or its configuration does not work here; FailedPrecondition when
  // the model or the data are not the run's.
  absl::Status Run();

  // Makes Run return: at once, unless the worker has begun to send a contribution, which is ended first. A second call
  // breaks that off, too.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Slots computed so far.
  int64_t slots_computed() const { return slots_computed_.load(std::memory_order_relaxed); }

 private:
  // One session: from GetRun until the stream ends.
  absl::Status RunSession();
  absl::Status PrepareTask(const RunConfig& config);
  absl::Status ComputeBlocks(StepChannel* channel);
  absl::Status ComputeBlock(StepChannel* channel, const StepChannel::Assignment& assignment);
  absl::Duration chief_wait() const;
  void Tell(void (SessionRetries::*event)()) ABSL_LOCKS_EXCLUDED(mutex_);
  // Marks an error as the worker's own, which another session does not help.
  absl::Status FailedHere(absl::Status status);
  void SetChannel(StepChannel* channel) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  ChiefClient* const client_;
  const uint64_t incarnation_;
  absl::optional<RunConfig> config_;
  Task task_;
  absl::optional<ParameterLayout> layout_;
  std::unique_ptr<BlockGradients> gradients_;
  // Between the model and gradients_.
  std::unique_ptr<GradientTransforms> transforms_;
  bool failed_here_ = false;
  std::atomic<int64_t> slots_computed_{0};
  // Between a token and the end of its contribution.
  std::atomic<bool> computing_{false};
  // False: what is being computed is not wanted any more.
  std::atomic<bool> wanted_{true};
  // The chief said so in a heartbeat.
  std::atomic<bool> finished_{false};
  std::atomic<bool> stop_requested_{false};

  Mutex mutex_;
  CondVar stop_;
  absl::optional<SessionRetries> retries_ ABSL_GUARDED_BY(mutex_);
  StepChannel* channel_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_TRAINING_WORKER_H_
