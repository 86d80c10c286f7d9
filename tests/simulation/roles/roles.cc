#include "lockstep/tests/simulation/roles/roles.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/contract/build_info.h"
#include "lockstep/server/process/chief_host.h"
#include "lockstep/tests/simulation/roles/chief_client.h"
#include "lockstep/tests/simulation/roles/chief_server.h"
#include "lockstep/tests/simulation/world/world.h"
#include "lockstep/train/session/read_variables.h"

namespace lockstep {
namespace simulation {
namespace {

// Serves like ChiefServer, but on the simulated network.
absl::StatusOr<ServedChief> ServeSimulated(Process* process, const ChiefRole& role, Chief* chief) {
  ServedChief served;
  served.address = role.listen;
  if (absl::EndsWith(served.address, ":0")) {
    served.address = process->world()->network()->AnyPort(served.address.substr(0, served.address.size() - 2));
  }
  CHECK(absl::SimpleAtoi(served.address.substr(served.address.rfind(':') + 1), &served.port)) << served.address;
  // Reads the step now, before a worker can declare a model.
  const int64_t first_step = LastStepOf(*chief);
  const auto server =
      std::make_shared<SimulatedChiefServer>(process, chief, served.address, &role.observer, role.many_workers);
  if (!server->listens()) return absl::UnavailableError(absl::StrCat("cannot listen on ", served.address));
  role.on_serving(process, chief->generation(), first_step);
  served.server = server;
  return served;
}

ChiefHost::Options HostOptions(Process* process, const ChiefRole& role) {
  ChiefHost::Options options;
  options.chief.fs = process->fs();
  options.chief.machine.host = process->host()->name;
  options.chief.machine.build = SimulatedBuild();
  options.chief.clock = process->clock();
  // Uses a longer period than the default, because a life lasts many hours.
  options.chief.housekeeping_period = absl::Milliseconds(100);
  options.chief.machine.executor = process->executor();
  options.chief.logdir = role.logdir;
  options.chief.config = role.config;
  options.chief.change_settings = role.change_settings;
  options.chief.machine.old_version_bytes = role.old_version_bytes;
  options.chief.machine.draw_session_id = [process] { return process->world()->random()->Next(); };
  options.chief.machine.draw_run_id = options.chief.machine.draw_session_id;
  options.chief.replaces = role.replaces;
  if (role.beats) options.chief.beat_period = BeatPeriod(role.config);
  options.standby = role.standby;
  options.predecessor_limit = role.lock_wait;
  options.watch_signals = false;
  options.listen = role.listen;
  // A simulated network contains only the run's machines.
  options.security.insecure = true;
  options.serve = [process, &role](const std::string&, Chief* chief) { return ServeSimulated(process, role, chief); };
  options.port_file = role.port_file;
  options.address_file.path = role.address_file;
  return options;
}

// Ends the process if a stop takes too long, as ChiefHost does.
void LimitStop(Process* process, const config::v1::RunSpec& config) {
  World* const world = process->world();
  const absl::Duration limit = absl::Seconds(config.checkpoint().stop_seconds()) + kEndingLimit;
  world->scheduler()->At(world->now() + absl::ToInt64Nanoseconds(limit), [world, process] {
    world->End(process, Exit{kExitFailed, /*killed=*/false});
  });
}

absl::Status Serve(Process* process, const ChiefRole& role, ChiefHost* host) {
  RETURN_IF_ERROR(host->Serve());
  const absl::Status status = host->Wait();
  role.on_waited(process, status, LastStepOf(*host->chief()));
  host->MarkEnd(status);
  if (absl::IsDeadlineExceeded(status)) process->ExitNow(host->ExitCode(status));
  return status;
}

}  // namespace

v1::BuildInfo SimulatedBuild() {
  v1::BuildInfo build = ThisBuildInfo();
  build.set_revision("simulated");
  build.set_compiler("any compiler");
  build.set_instruction_set("any");
  return build;
}

int RunChief(Process* process, const ChiefRole& role) {
  ChiefHost host(HostOptions(process, role));
  process->SetStop([process, &role, &host] {
    LimitStop(process, role.config);
    host.RequestStop();
  });
  absl::Status status = host.Create();
  if (!status.ok()) {
    LOG(ERROR) << "chief: " << status.message();
  } else {
    status = Serve(process, role, &host);
    LOG(INFO) << "chief: " << status;
  }
  process->ClearStop();
  return host.ExitCode(status);
}

int RunReader(Process* process, const ReaderRole& role) {
  World* const world = process->world();
  SimulatedConnector connector(process);
  const auto client = connector.Connect(ParseMasterAddress(role.master).value()).value();
  const int64_t reads = world->random()->Between(1, 6);
  for (int64_t i = 0; i < reads && !process->ghost() && process->stopped_at() == kNever; ++i) {
    const auto read = train::ReadVariables(client.get(), {});
    if (read.ok() && !process->ghost()) role.on_read(process, read->global_step, read->values);
    LOG(INFO) << "read: " << (read.ok() ? absl::StrCat("step ", read->global_step) : read.status().ToString());
    world->Sleep(world->random()->Between(absl::Nanoseconds(1), absl::Milliseconds(20)));
  }
  return 0;
}

}  // namespace simulation
}  // namespace lockstep
