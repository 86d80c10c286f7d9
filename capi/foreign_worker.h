#ifndef LOCKSTEP_CAPI_FOREIGN_WORKER_H_
#define LOCKSTEP_CAPI_FOREIGN_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/capi/slot_exchange.h"
#include "lockstep/cli/replay/program_replay.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/contract.pb.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/data/example_order.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/session/block/block_observer.h"
#include "lockstep/worker/session/training_worker.h"

namespace lockstep {

// A worker whose slots a program computes. Runs a TrainingWorker or a replay in its own thread, and exchanges slots
// between that thread and the program's threads. Create starts it, and End or the destructor ends it. Thread-safe.
class ForeignWorker : private BlockObserver {
 public:
  struct Options {
    std::string master;
    std::string name;
    // The run that the program declares. The chief's run must match it in everything that the weights depend on.
    absl::optional<config::v1::RunSpec> run;
    v1::ModelSpec model;
    v1::Framework framework;
    std::vector<Model::Part> parts;
    // If present, each slot lists the indices of the examples in its batch.
    absl::optional<v1::DataDigest> data;
    absl::optional<absl::Duration> chief_wait;
    // The values that a new run starts from, by variable, with their variables' shapes.
    std::map<std::string, Tensor> initial_values;
    // If present, the program computes this replay instead of slots of a chief. `master`, `name`, `chief_wait` and
    // `initial_values` are then ignored.
    absl::optional<ProgramReplay> replay;
  };

  // Returns InvalidArgument for an invalid address, model or framework, and FailedPrecondition if another process
  // computes the replay.
  static absl::StatusOr<std::unique_ptr<ForeignWorker>> Create(Options options);
  ~ForeignWorker() override { End(); }

  // Stops the worker, abandons an open slot and joins the thread. Must be called by only one thread, and before the
  // destructor.
  void End();

  // Returns the exchange. After the worker has ended, its Take returns any error from TrainingWorker::Run, or Cancelled
  // after a replay, whatever its result.
  SlotExchange* slots() { return &exchange_; }
  bool wanted() const { return worker_ == nullptr || worker_->wanted(); }

  // Leaves the run. A slot that the program holds stays open.
  void RequestStop();
  // Calls TrainingWorker::RequestFinish. Has no effect on a replay.
  absl::Status RequestFinish(const std::string& reason) {
    return worker_ == nullptr ? absl::OkStatus() : worker_->RequestFinish(reason);
  }

  // Digests of the initial values. Each is empty if there are none.
  struct InitialDigests {
    std::string own;
    // The digest of the values that a worker brought for the run.
    std::string of_run;
  };
  // Returns errors from Spec.
  absl::StatusOr<InitialDigests> initial_digests() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the run's configuration, or FailedPrecondition if no slot has been offered yet.
  absl::StatusOr<config::v1::RunSpec> Spec() ABSL_LOCKS_EXCLUDED(mutex_);
  // Both functions return errors from Spec. Indices also returns FailedPrecondition if Options::data is absent, and
  // errors from ExampleOrder::Indices.
  absl::StatusOr<std::vector<int64_t>> Indices(int64_t step, int64_t slot) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<uint64_t> Seed(int64_t step, int64_t slot) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class ForeignModel;

  ForeignWorker(Options options, ParameterLayout layout);
  // Creates worker_. Returns InvalidArgument for an invalid address.
  absl::Status CreateWorker(std::map<std::string, Tensor> initial_values);
  absl::Status PrepareReplay();
  // The body of the thread.
  absl::Status Run();
  absl::StatusOr<Workload> MakeWorkload(const config::v1::RunSpec& config) ABSL_LOCKS_EXCLUDED(mutex_);

  // Implement BlockObserver. A slot that is computed outside a block is the canary's.
  void OnSession(bool goes_on) override { fresh_ = true; }
  Decision BeforeBlock(const v1::Token& token, BlockAdditions* additions) override;
  bool AwaitDemand() override { return false; }
  void AfterBlock(const v1::Token& token, double mean_loss) override { in_block_ = false; }
  void OnBlockLost() override { in_block_ = false; }
  void OnResult(v1::ContributionResult result) override {}
  void OnRunOver() override {}

  const Options options_;  // without the initial values
  const ParameterLayout layout_;
  std::string initial_digest_;   // constant after Create
  std::string replayed_digest_;  // the digest of a replayed run's initial values; constant after Create
  SlotExchange exchange_;
  std::unique_ptr<ChiefClient> client_;
  std::unique_ptr<TrainingWorker> worker_;  // null in a replay
  // Used only by the worker's thread.
  bool in_block_ = false;
  bool fresh_ = false;  // no slot of the session was computed yet

  Mutex mutex_;
  absl::optional<config::v1::RunSpec> config_ ABSL_GUARDED_BY(mutex_);
  absl::optional<ExampleOrder> order_ ABSL_GUARDED_BY(mutex_);
  // Declared last, so that the thread ends before the members that it uses are destroyed.
  std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CAPI_FOREIGN_WORKER_H_
