#include "lockstep/train/program/local_run.h"

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/local/local_connector.h"
#include "lockstep/server/process/chief_host.h"
#include "lockstep/train/session/local_workers.h"

namespace lockstep {
namespace {

constexpr absl::Duration kStatusPeriod = absl::Milliseconds(500);

// Runs the workers until the chief has ended. A worker that fails permanently stops the chief. Returns the first such
// failure, or else the chief's result.
absl::Status RunWorkers(const LocalRunOptions& options, ChiefClient* client, ChiefHost* host) {
  WorkloadOptions workload = options.workload;
  if (!options.logdir.empty()) workload.index_directory = JoinPath(options.logdir, "index");
  train::LocalWorkers::Options local;
  local.clock = options.clock;
  local.workers = options.workers;
  local.name = [](int i) { return absl::StrCat("worker-", i); };
  local.make_workload = [workload](const config::v1::RunSpec& spec) { return LoadWorkload(spec, workload); };
  Mutex mutex;
  absl::Status failure;  // guarded by mutex until the workers have ended
  auto workers = std::make_unique<train::LocalWorkers>(local, client, [&](const absl::Status& why) {
    {
      MutexLock lock(&mutex);
      failure.Update(why);
    }
    host->chief()->ends()->RequestStop();
  });
  const absl::Status chief_status = host->Wait();
  if (absl::IsCancelled(chief_status) && !workers->StopWithin(train::kHungWorkerLimit)) {
    LOG(ERROR) << "the last step is saved; a worker of this process hangs, which ends without it";
    std::_Exit(host->ExitCode(chief_status));
  }
  workers.reset();
  return failure.ok() ? chief_status : failure;
}

ChiefHost::Options HostOptions(const config::v1::RunSpec& config, const LocalRunOptions& options) {
  ChiefHost::Options host;
  static_cast<ProgramOptions&>(host.chief) = options;
  host.chief.write_journal = true;
  host.chief.config = config;
  host.chief.config.mutable_cluster()->clear_linger_seconds();  // no other process can connect
  return host;
}

}  // namespace

LocalRunEnd RunLocal(const config::v1::RunSpec& config, const LocalRunOptions& options) {
  ChiefHost host(HostOptions(config, options));
  LocalRunEnd end;
  end.status = host.Create();
  if (end.status.ok()) {
    Chief* const chief = host.chief();
    const std::unique_ptr<ChiefClient> client = LocalConnector(chief).Connect(MasterAddress()).value();
    PeriodicTask::Options periodic;
    periodic.clock = options.clock;
    periodic.name = "progress";
    periodic.period = options.on_status ? kStatusPeriod : absl::ZeroDuration();
    PeriodicTask reports(periodic, [&] { options.on_status(chief->GetStatus()); });
    end.status = RunWorkers(options, client.get(), &host);
    reports.Stop();
    if (options.on_status) options.on_status(chief->GetStatus());
  }
  end.exit_code = host.ExitCode(end.status);
  end.stop_signal = host.stop_signal();
  return end;
}

}  // namespace lockstep
