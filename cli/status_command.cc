#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/config_flags.h"
#include "cli/report/run_status_text.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/process.h"
#include "common/base/status_macros.h"
#include "common/cluster/master_address.h"
#include "common/transport/grpc_chief_client.h"

namespace lockstep {
namespace {

constexpr absl::Duration kWatchPeriod = absl::Seconds(1);
// Clears the screen and goes to its upper left corner.
constexpr char kClear[] = "\x1b[H\x1b[2J";

// The targets of --master, at least one.
absl::StatusOr<std::vector<std::string>> TargetsOf(const std::string& master) {
  ASSIGN_OR_RETURN(MasterAddress address, ParseMasterAddress(master));
  if (address.in_process()) {
    return absl::InvalidArgumentError(
        "--master is missing: the chief's address, such as --master=grpc://127.0.0.1:2222");
  }
  return std::move(address.targets);
}

// Of the first target that answers.
absl::StatusOr<RunStatus> AskForStatus(const std::vector<std::unique_ptr<ChiefClient>>& clients) {
  absl::StatusOr<RunStatus> status = absl::UnavailableError("");
  for (const auto& client : clients) {
    status = client->GetStatus();
    if (status.ok()) return status;
  }
  return status;
}

std::string NobodyAnswers(const std::string& master, const absl::Status& status) {
  return absl::StrCat("no chief answers at ", master, ": ", status.message());
}

}  // namespace

int StatusCommand(FileSystem*, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  std::string master;
  bool json = false, watch = false;
  absl::Duration timeout = absl::Seconds(3);
  CommandLine command_line("lockstep status", "Shows what a running chief and its workers are doing.",
                           "Exit codes: 0 answered; 2 wrong arguments; 138 no chief answers.\n"
                           "The fields of --json are those of RunStatus in proto/status.proto.");
  command_line.AddFlag("master", "grpc://HOST:PORT", "the chief; also unix:/path", &master);
  command_line.AddFlag("json", "", "prints one JSON object", &json);
  command_line.AddFlag("watch", "", "again every second, until the run is over", &watch);
  command_line.AddFlag("timeout", "TIME", "how long to wait for the answer", &timeout);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const auto targets = TargetsOf(master);
  if (!targets.ok()) return PrintError("lockstep status", targets.status().message(), kExitBadConfiguration, err);

  GrpcClientOptions options;
  options.call_timeout = timeout;
  std::vector<std::unique_ptr<ChiefClient>> clients;
  for (const std::string& target : *targets) clients.push_back(NewGrpcChiefClient(target, options));
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  for (;;) {
    const absl::StatusOr<RunStatus> status = AskForStatus(clients);
    if (!status.ok()) return PrintError("lockstep status", NobodyAnswers(master, status.status()), kExitRetryable, err);
    out << (watch && terminal && !json ? kClear : "") << (json ? StatusJson(*status) : StatusReport(*status));
    out.flush();
    if (!watch || status->phase() == RunStatus::FINISHED || status->phase() == RunStatus::FAILED) return kExitDone;
    Clock::Real()->Sleep(kWatchPeriod);
    if (!terminal && !json) out << "\n";
  }
}

int ProbeCommand(FileSystem*, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  std::string master;
  absl::Duration timeout = absl::Seconds(3);
  CommandLine command_line("lockstep probe", "Asks the health service of a chief whether it serves.",
                           "Exit codes: 0 it serves; 1 it does not or does not answer; 2 wrong arguments.");
  command_line.AddFlag("master", "grpc://HOST:PORT", "the chief; also unix:/path", &master);
  command_line.AddFlag("timeout", "TIME", "how long to wait for the answer", &timeout);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const auto targets = TargetsOf(master);
  if (!targets.ok()) return PrintError("lockstep probe", targets.status().message(), kExitBadConfiguration, err);
  absl::Status status;
  for (const std::string& target : *targets) {
    status = CheckHealth(target, timeout);
    if (!status.ok()) continue;
    out << target << " serves\n";
    return kExitDone;
  }
  return PrintError("lockstep probe", NobodyAnswers(master, status), kExitFailed, err);
}

}  // namespace lockstep
