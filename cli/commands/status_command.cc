#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/remote_chief.h"
#include "lockstep/cli/report/run_status_text.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/transport/connection/credentials_flags.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/common/transport/grpc_connector.h"

namespace lockstep {
namespace {

constexpr absl::Duration kWatchPeriod = absl::Seconds(1);
// Clears the screen and moves the cursor to the upper left corner.
constexpr char kClear[] = "\x1b[H\x1b[2J";

}  // namespace

int StatusCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  std::string master;
  bool json = false, watch = false;
  absl::Duration timeout = absl::Seconds(3);
  CommandLine command_line(
      "lockstep status", "Shows what a running chief and its workers are doing.",
      "Exit codes: 0 answered; 1 the run is over, says its address file; 2 wrong arguments; 138 no chief answers.\n"
      "The fields of --json are those of RunStatus in proto/lockstep/v1/status.proto.");
  command_line.AddFlag("master", "grpc://HOST:PORT", kRemoteMasterHelp, &master);
  CredentialsFlags credentials_flags;
  credentials_flags.DeclareWithToken(&command_line);
  command_line.AddFlag("json", "", "prints one JSON object", &json);
  command_line.AddFlag("watch", "", "again every second, until the run is over", &watch);
  command_line.AddFlag("timeout", "TIME", "how long to wait for the answer", &timeout);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const auto address = ParseRemoteMaster(master);
  if (!address.ok()) return PrintError("lockstep status", address.status().message(), kExitBadConfiguration, err);

  const auto credentials = credentials_flags.Load(fs);
  if (!credentials.ok())
    return PrintError("lockstep status", credentials.status().message(), kExitBadConfiguration, err);
  GrpcClientOptions options;
  options.call_timeout = options.connect_timeout = timeout;
  options.credentials = *credentials;
  const auto client = GrpcConnector(fs, options).Connect(*address);
  if (!client.ok()) return PrintError("lockstep status", client.status().message(), kExitBadConfiguration, err);
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  for (;;) {
    const absl::StatusOr<v1::RunStatus> status = (*client)->GetStatus();
    if (!status.ok()) return PrintNoAnswer("lockstep status", master, status.status(), kExitRetryable, err);
    out << (watch && terminal && !json ? kClear : "") << (json ? StatusJson(*status) : StatusReport(*status));
    out.flush();
    if (!watch || status->phase() == v1::RunStatus::FINISHED || status->phase() == v1::RunStatus::FAILED)
      return kExitDone;
    Clock::Real()->Sleep(kWatchPeriod);
    if (!terminal && !json) out << "\n";
  }
}

int ProbeCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  std::string master;
  absl::Duration timeout = absl::Seconds(3);
  CommandLine command_line("lockstep probe", "Asks the health service of a chief whether it serves.",
                           "Exit codes: 0 it serves; 1 it does not or does not answer; 2 wrong arguments.");
  command_line.AddFlag("master", "grpc://HOST:PORT", kRemoteMasterHelp, &master);
  CredentialsFlags credentials_flags;
  credentials_flags.Declare(&command_line);
  command_line.AddFlag("timeout", "TIME", "how long to wait for the answer", &timeout);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const auto address = ParseRemoteMaster(master);
  if (!address.ok()) return PrintError("lockstep probe", address.status().message(), kExitBadConfiguration, err);
  const auto targets = FindTargets(fs, *address);
  if (!targets.ok()) return PrintNoAnswer("lockstep probe", master, targets.status(), kExitFailed, err);
  const auto credentials = credentials_flags.Load(fs);
  if (!credentials.ok()) {
    return PrintError("lockstep probe", credentials.status().message(), kExitBadConfiguration, err);
  }
  absl::Status status;
  for (const std::string& target : *targets) {
    status = CheckHealth(target, timeout, *credentials);
    if (!status.ok()) continue;
    out << target << " serves\n";
    return kExitDone;
  }
  return PrintNoAnswer("lockstep probe", master, status, kExitFailed, err);
}

}  // namespace lockstep
