#include "lockstep/train/program/local_run.h"

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/local/local_connector.h"
#include "lockstep/server/process/chief_process.h"
#include "lockstep/train/session/worker_threads.h"
#include "lockstep/worker/session/training_worker.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep {
namespace {

constexpr absl::Duration kStatusPeriod = absl::Milliseconds(500);

std::unique_ptr<TrainingWorker> NewWorker(int index, const LocalRunOptions& options, ChiefClient* client) {
  TrainingWorker::Options worker;
  worker.name = absl::StrCat("worker-", index);
  worker.clock = Clock::Real();
  worker.chief_address = "this process";
  worker.make_workload = [threads = options.compute_threads,
                          logdir = options.logdir](const config::v1::RunSpec& config) {
    WorkloadOptions task;
    if (!logdir.empty()) task.index_directory = JoinPath(logdir, "index");
    task.compute_threads = threads;
    return LoadWorkload(config, task);
  };
  return std::make_unique<TrainingWorker>(std::move(worker), client);
}

// Runs the workers until the chief has ended; a worker that fails for good ends it. Returns that worker's failure, else
// how the chief has ended.
absl::Status RunWorkers(const LocalRunOptions& options, ChiefClient* client, ChiefProcess* process) {
  std::vector<std::unique_ptr<TrainingWorker>> workers;
  for (int i = 0; i < options.workers; ++i) workers.push_back(NewWorker(i, options, client));
  std::vector<absl::Status> statuses(workers.size());
  train::WorkerThreads threads(Clock::Real());
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.Start(absl::StrCat("worker-", i), [&, i] {
      statuses[i] = workers[i]->Run();
      if (!statuses[i].ok()) process->chief()->ends()->RequestStop();
    });
  }
  const absl::Status chief_status = process->Wait();
  // Those that are done have ended. One that still opened its data would look for the chief, which answers no more.
  for (const auto& worker : workers) worker->RequestStop();
  if (absl::IsCancelled(chief_status) && !threads.AwaitEnd(train::kHungWorkerLimit)) {
    LOG(ERROR) << "the last step is saved; a worker of this process hangs, which ends without it";
    std::_Exit(process->ExitCode(chief_status));
  }
  threads.Join();
  for (const absl::Status& status : statuses) {
    if (!status.ok() && !absl::IsCancelled(status)) return status;
  }
  return chief_status;
}

ChiefProcess::Options ProcessOptions(const config::v1::RunSpec& config, const LocalRunOptions& options) {
  ChiefProcess::Options process;
  process.chief.fs = FileSystem::Real();
  process.chief.clock = Clock::Real();
  process.chief.logdir = options.logdir;
  process.chief.config = config;
  process.chief.change_settings = options.change_settings;
  process.chief.config.mutable_cluster()->clear_linger_seconds();  // nobody else can come
  return process;
}

}  // namespace

LocalRunEnd RunLocal(const config::v1::RunSpec& config, const LocalRunOptions& options) {
  ChiefProcess process(ProcessOptions(config, options));
  LocalRunEnd end;
  end.status = process.Create();
  if (end.status.ok()) {
    Chief* const chief = process.chief();
    const std::unique_ptr<ChiefClient> client = LocalConnector(chief).Connect(MasterAddress()).value();
    PeriodicTask::Options periodic;
    periodic.clock = Clock::Real();
    periodic.name = "progress";
    periodic.period = options.on_status ? kStatusPeriod : absl::ZeroDuration();
    PeriodicTask reports(periodic, [&] { options.on_status(chief->GetStatus()); });
    end.status = RunWorkers(options, client.get(), &process);
    reports.Stop();
    if (options.on_status) options.on_status(chief->GetStatus());
  }
  end.exit_code = process.ExitCode(end.status);
  return end;
}

}  // namespace lockstep
