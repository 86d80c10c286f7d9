#include "lockstep/tests/simulation/roles/roles.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/contract/build_info.h"
#include "lockstep/server/process/address_file.h"
#include "lockstep/server/process/chief_process.h"
#include "lockstep/tests/simulation/roles/chief_client.h"
#include "lockstep/tests/simulation/roles/chief_server.h"
#include "lockstep/tests/simulation/world/world.h"
#include "lockstep/train/session/read_variables.h"

namespace lockstep {
namespace simulation {
namespace {

ChiefProcess::Options ProcessOptions(Process* process, const ChiefRole& role, AddressFile* address_file) {
  ChiefProcess::Options options;
  options.chief.fs = process->fs();
  options.chief.machine.host = process->host()->name;
  options.chief.machine.build = SimulatedBuild();
  options.chief.clock = process->clock();
  // A life is many hours long.
  options.chief.housekeeping_period = absl::Milliseconds(100);
  options.chief.machine.executor = process->executor();
  options.chief.logdir = role.logdir;
  options.chief.config = role.config;
  options.chief.change_settings = role.change_settings;
  options.chief.machine.old_version_bytes = role.old_version_bytes;
  options.chief.machine.draw_session_id = [process] { return process->world()->random()->Next(); };
  options.chief.on_accepted = [address_file] { return address_file->Prepare(); };
  options.predecessor_limit = role.lock_wait;
  options.watch_signals = false;
  return options;
}

absl::StatusOr<AddressFile> NewAddressFile(Process* process, const ChiefRole& role) {
  AddressFile::Options options;
  options.fs = process->fs();
  options.path = role.address_file;
  options.listen = role.listen;
  options.machine = process->host()->name;
  return AddressFile::Create(std::move(options));
}

// Ends the process if a stop takes too long, as ChiefProcess does.
void LimitStop(Process* process, const config::v1::RunSpec& config) {
  World* const world = process->world();
  const absl::Duration limit = absl::Seconds(config.checkpoint().stop_seconds()) + kEndingLimit;
  world->scheduler()->At(world->now() + absl::ToInt64Nanoseconds(limit), [world, process] {
    world->End(process, Exit{kExitFailed, /*killed=*/false});
  });
}

absl::Status Serve(Process* process, const ChiefRole& role, AddressFile* address_file, ChiefProcess* chief_process) {
  Chief* const chief = chief_process->chief();
  std::string address = role.listen;
  if (absl::EndsWith(address, ":0")) {
    address = process->world()->network()->AnyPort(address.substr(0, address.size() - 2));
  }
  // Read before a worker can declare a model.
  const int64_t first_step = LastStepOf(*chief);
  SimulatedChiefServer server(process, chief, address, &role.observer);
  if (!server.listens()) return absl::UnavailableError(absl::StrCat("cannot listen on ", address));
  role.on_serving(process, chief->generation(), first_step);
  if (!role.port_file.empty()) {
    const std::string port = address.substr(address.rfind(':') + 1);
    RETURN_IF_ERROR(WriteFileAtomically(process->fs(), role.port_file, absl::StrCat(port, "\n")));
  }
  RETURN_IF_ERROR(address_file->Write(address));
  const absl::Status status = chief_process->Wait();
  role.on_waited(process, status, LastStepOf(*chief));
  const absl::Status marked = address_file->End(status);
  if (!marked.ok()) LOG(ERROR) << "chief: " << marked.message();
  if (absl::IsDeadlineExceeded(status)) process->ExitNow(chief_process->ExitCode(status));
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
  absl::StatusOr<AddressFile> address_file = NewAddressFile(process, role);
  if (!address_file.ok()) return absl::IsInternal(address_file.status()) ? kExitRetryable : kExitBadConfiguration;
  ChiefProcess chief_process(ProcessOptions(process, role, &*address_file));
  process->SetStop([process, &role, &chief_process] {
    LimitStop(process, role.config);
    chief_process.RequestStop();
  });
  absl::Status status = chief_process.Create();
  if (!status.ok()) {
    LOG(ERROR) << "chief: " << status.message();
  } else {
    status = Serve(process, role, &*address_file, &chief_process);
    LOG(INFO) << "chief: " << status;
  }
  const absl::Status put_back = address_file->PutBack();
  if (!put_back.ok()) LOG(ERROR) << "chief: " << put_back.message();
  process->ClearStop();
  return chief_process.ExitCode(status);
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
