#include "lockstep/train/session/local_workers.h"

#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep::train {

namespace {

WorkloadFactory BaseFactoryOf(const SessionOptions& options) {
  if (options.op.make_workload) return options.op.make_workload;
  WorkloadOptions workload;
  workload.compute_threads = options.compute_threads;
  if (options.is_chief && !options.logdir.empty()) workload.index_directory = JoinPath(options.logdir, "index");
  return [workload](const config::v1::RunSpec& spec) { return LoadWorkload(spec, workload); };
}

}  // namespace

WorkloadFactory WorkloadFactoryOf(const SessionOptions& options) {
  if (!options.op.transform_model) return BaseFactoryOf(options);
  return [make = BaseFactoryOf(options),
          transform = options.op.transform_model](const config::v1::RunSpec& spec) -> absl::StatusOr<Workload> {
    ASSIGN_OR_RETURN(Workload workload, make(spec));
    ASSIGN_OR_RETURN(workload.model, transform(std::move(workload.model)));
    return workload;
  };
}

LocalWorkers::LocalWorkers(const Options& options, ChiefClient* client, std::function<void(absl::Status)> on_failure)
    : clock_(options.clock), running_(options.workers) {
  for (int i = 0; i < options.workers; ++i) {
    TrainingWorker::Options worker;
    worker.name = options.name(i);
    worker.clock = clock_;
    worker.chief_address = "this process";
    worker.make_workload = options.make_workload;
    workers_.push_back(std::make_unique<TrainingWorker>(worker, client));
  }
  for (const auto& worker : workers_) {
    threads_.push_back(
        Executor::Threads()->Start("worker", [this, worker = worker.get(), on_failure] { Run(worker, on_failure); }));
  }
}

LocalWorkers::~LocalWorkers() {
  for (const auto& worker : workers_) worker->RequestStop();
  threads_.clear();
}

void LocalWorkers::Run(TrainingWorker* worker, const std::function<void(absl::Status)>& on_failure) {
  const absl::Status status = worker->Run();
  if (!status.ok() && !absl::IsCancelled(status)) on_failure(status);
  MutexLock lock(&mutex_);
  --running_;
  ended_.SignalAll();
}

bool LocalWorkers::StopWithin(absl::Duration limit) {
  for (const auto& worker : workers_) worker->RequestStop();
  const absl::Time deadline = clock_->Now() + limit;
  MutexLock lock(&mutex_);
  while (running_ > 0) {
    if (clock_->WaitUntil(&ended_, &mutex_, deadline)) return running_ == 0;
  }
  return true;
}

}  // namespace lockstep::train
