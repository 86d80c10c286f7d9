#include "lockstep/train/session/end/await_run_end.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/cluster/end_of_run.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/transport/connection/credentials_flags.h"
#include "lockstep/common/transport/grpc_connector.h"
#include "lockstep/train/session/end/pause.h"
#include "lockstep/train/session/end/run_end_client.h"

namespace lockstep::train {
namespace {

absl::Status Wait(const AwaitRunEndOptions& options, const std::function<absl::StatusOr<v1::RunStatus>()>& get_status) {
  const absl::Time began = options.clock->Now();
  absl::Time last_heard = began;
  bool heard = false;
  while (true) {
    const absl::StatusOr<v1::RunStatus> status = get_status();
    const absl::Time now = options.clock->Now();
    if (status.ok()) {
      last_heard = now;
      heard = true;
    } else if ((heard || now - began >= RunEndClient::kGrace) && !options.logdir.empty() &&
               RecordSaysFinished(options.fs, options.logdir)) {
      return absl::OkStatus();
    }
    // The address file says so. A chief that starts again takes the mark away.
    if (IsEndOfRun(status.status()) && now - began >= RunEndClient::kGrace) {
      return absl::IsOutOfRange(status.status()) ? absl::OkStatus() : status.status();
    }
    if (status.ok() && status->phase() == v1::RunStatus::FINISHED) return absl::OkStatus();
    if (status.ok() && status->phase() == v1::RunStatus::FAILED) {
      return absl::FailedPreconditionError(absl::StrCat("the run has failed: ", status->message()));
    }
    const absl::Duration left = options.limit - (now - began);
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("the run is not over after ", absl::FormatDuration(options.limit)));
    }
    if (now - last_heard > options.max_silence) {
      return absl::UnavailableError(absl::StrCat("nothing was heard of the chief at ", options.master, " for ",
                                                 absl::FormatDuration(now - last_heard), ": ",
                                                 status.status().message()));
    }
    RETURN_IF_ERROR(Pause(std::min(options.poll_interval, left), options.clock, options.stop));
  }
}

}  // namespace

absl::Status AwaitRunEnd(const AwaitRunEndOptions& options) {
  if (options.get_status) return Wait(options, options.get_status);
  ASSIGN_OR_RETURN(const MasterAddress master, ParseMasterAddress(options.master));
  if (master.in_process()) {
    return absl::InvalidArgumentError("the master is empty: where is the chief whose run is waited for?");
  }
  GrpcClientOptions client_options;
  const std::string tls_dir = options.tls_dir.empty() ? TlsDirOfEnvironment() : options.tls_dir;
  ASSIGN_OR_RETURN(client_options.credentials, LoadClientCredentials(options.fs, tls_dir, /*token_file=*/""));
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefClient> client,
                   GrpcConnector(options.fs, client_options).Connect(master));
  return Wait(options, [&] { return client->GetStatus(); });
}

}  // namespace lockstep::train
