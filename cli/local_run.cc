#include "cli/local_run.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/periodic_task.h"
#include "common/base/process.h"
#include "common/base/status_macros.h"
#include "common/io/file_system.h"
#include "glog/logging.h"
#include "server/chief/chief.h"
#include "server/local/local_chief_client.h"
#include "worker/session/configured_task.h"
#include "worker/session/training_worker.h"

namespace lockstep {
namespace {

constexpr absl::Duration kStatusPeriod = absl::Milliseconds(500);

std::unique_ptr<TrainingWorker> NewWorker(int index, const LocalRunOptions& options, ChiefClient* client) {
  TrainingWorker::Options worker;
  worker.name = absl::StrCat("worker-", index);
  worker.clock = Clock::Real();
  worker.chief_address = "this process";
  worker.make_task = [threads = options.compute_threads, logdir = options.logdir](const RunConfig& config) {
    ConfiguredTaskOptions task;
    if (!logdir.empty()) task.index_directory = JoinPath(logdir, "index");
    task.compute_threads = threads;
    return MakeConfiguredTask(config, task);
  };
  return std::make_unique<TrainingWorker>(std::move(worker), client);
}

// Runs the workers until the chief has ended; a worker that fails for good ends it. Returns that worker's failure.
absl::Status RunWorkers(const LocalRunOptions& options, ChiefClient* client, Chief* chief, TerminationWatch* watch,
                        absl::Status* chief_status) {
  std::vector<std::unique_ptr<TrainingWorker>> workers;
  for (int i = 0; i < options.workers; ++i) workers.push_back(NewWorker(i, options, client));
  std::vector<absl::Status> statuses(workers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.emplace_back([&, i] {
      statuses[i] = workers[i]->Run();
      if (!statuses[i].ok()) chief->RequestStop();
    });
  }
  *chief_status = chief->Wait();
  // All that can be saved is.
  watch->set_second_exit_code(ExitCodeOf(*chief_status));
  // Those that are done have ended. One that still opened its data would look for the chief, which answers no more.
  for (const auto& worker : workers) worker->RequestStop();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    if (!status.ok() && !absl::IsCancelled(status)) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunLocal(const RunConfig& config, const LocalRunOptions& options) {
  Mutex mutex;
  Chief* chief_to_stop = nullptr;
  bool stop = false;
  TerminationWatch watch(
      [&] {
        MutexLock lock(&mutex);
        stop = true;
        if (chief_to_stop != nullptr) chief_to_stop->RequestStop();
      },
      kExitFailed, absl::Seconds(config.checkpoint().stop_seconds()) + kEndingLimit);
  Chief::Options chief_options;
  chief_options.fs = FileSystem::Real();
  chief_options.clock = Clock::Real();
  chief_options.logdir = options.logdir;
  chief_options.config = config;
  chief_options.config.mutable_cluster()->clear_linger_seconds();  // nobody else can come
  ASSIGN_OR_RETURN(std::unique_ptr<Chief> chief, Chief::Create(std::move(chief_options)));
  {
    MutexLock lock(&mutex);
    chief_to_stop = chief.get();
    if (stop) chief->RequestStop();
  }
  const std::unique_ptr<ChiefClient> client = NewLocalChiefClient(chief.get());
  PeriodicTask::Options periodic;
  periodic.clock = Clock::Real();
  periodic.period = options.on_status ? kStatusPeriod : absl::ZeroDuration();
  PeriodicTask reports(periodic, [&] { options.on_status(chief->GetStatus()); });

  absl::Status chief_status;
  const absl::Status worker_status = RunWorkers(options, client.get(), chief.get(), &watch, &chief_status);
  reports.Stop();
  if (options.on_status) options.on_status(chief->GetStatus());
  {
    MutexLock lock(&mutex);
    chief_to_stop = nullptr;
  }
  // Destroying it would wait for the disk.
  if (absl::IsDeadlineExceeded(chief_status)) (void)chief.release();
  if (!worker_status.ok()) return worker_status;
  return chief_status;
}

}  // namespace lockstep
