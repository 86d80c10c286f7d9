#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/remote_chief.h"
#include "lockstep/cli/page/trace_text.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/transport/connection/credentials_flags.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/common/transport/grpc_run_feed.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep trace";
// More than the number of steps that the chief keeps.
constexpr int64_t kMaxSteps = 10000;
// Time limit for diagnosing a chief that does not answer.
constexpr absl::Duration kDiagnosisLimit = absl::Seconds(1);

// Watches the chief at `target` until `steps` steps have been collected or `deadline` has passed. Returns errors that
// the feed reports before its first reply.
absl::Status Collect(const std::string& target, const GrpcClientOptions& client, size_t steps, absl::Time deadline,
                     StepTrace* trace) {
  v1::WatchRunRequest request;
  request.set_times(true);
  const std::unique_ptr<RunFeed> feed = NewGrpcRunFeed(target, request, client);
  v1::WatchRunReply reply;
  for (bool first = true; trace->steps() < steps && Clock::Real()->Now() < deadline; first = false) {
    const absl::Status read = feed->Read(&reply);
    if (absl::IsUnavailable(read) && first) {
      // If a certificate is wrong, the error from this call names it.
      const absl::Status health = CheckHealth(target, kDiagnosisLimit, client.credentials);
      return health.ok() ? read : health;
    }
    if (!read.ok()) return first ? read : absl::OkStatus();
    trace->Add(reply);
  }
  return absl::OkStatus();
}

}  // namespace

int TraceCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  std::string master, path = "trace.json";
  int64_t steps = 20;
  absl::Duration timeout = absl::Seconds(60);
  CommandLine command_line(
      kName, "Writes the last steps of a running cluster as a time line for chrome://tracing or ui.perfetto.dev.",
      "The chief keeps the last 200 steps; for more, the command waits until they are made. The steps do not wait for "
      "it.\n"
      "Exit codes: 0 written; 1 the file cannot be written, or the run is over; 2 wrong arguments; 138 no chief "
      "answers, or "
      "it made no step in time.");
  command_line.AddFlag("master", "grpc://HOST:PORT", kRemoteMasterHelp, &master);
  CredentialsFlags credentials_flags;
  credentials_flags.Declare(&command_line);
  command_line.AddFlag("steps", "N", "number of steps", &steps);
  command_line.AddFlag("out", "FILE", "the file to write", &path);
  command_line.AddFlag("timeout", "TIME", "how long to wait for the steps", &timeout);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const auto address = ParseRemoteMaster(master);
  if (!address.ok()) return PrintError(kName, address.status().message(), kExitBadConfiguration, err);
  if (steps < 1 || steps > kMaxSteps) {
    return PrintError(kName, absl::StrCat("--steps must be from 1 to ", kMaxSteps, ", not ", steps),
                      kExitBadConfiguration, err);
  }
  GrpcClientOptions client;
  const auto credentials = credentials_flags.Load(fs);
  if (!credentials.ok()) return PrintError(kName, credentials.status().message(), kExitBadConfiguration, err);
  client.credentials = *credentials;
  const auto targets = FindTargets(fs, *address);
  if (!targets.ok()) return PrintNoAnswer(kName, master, targets.status(), kExitFailed, err);
  const absl::Time deadline = Clock::Real()->Now() + timeout;
  StepTrace trace;
  absl::Status status;
  for (const std::string& target : *targets) {
    status = Collect(target, client, static_cast<size_t>(steps), deadline, &trace);
    if (status.ok()) break;
  }
  if (!status.ok()) return PrintNoAnswer(kName, master, status, kExitRetryable, err);
  if (trace.steps() == 0) {
    return PrintError(kName, absl::StrCat("the chief has made no step within ", absl::FormatDuration(timeout)),
                      kExitRetryable, err);
  }
  const absl::Status written = WriteFileAtomically(fs, path, trace.Text(static_cast<size_t>(steps)));
  if (!written.ok()) return PrintError(kName, written.message(), kExitFailed, err);
  out << path << ": " << CountText(static_cast<int64_t>(std::min(trace.steps(), static_cast<size_t>(steps))), "step")
      << "\n";
  return kExitDone;
}

}  // namespace lockstep
