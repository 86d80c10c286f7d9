#include "lockstep/train/session/end/await_run_end.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/end_of_run.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/transport/connection/credentials_flags.h"
#include "lockstep/common/transport/grpc_connector.h"
#include "lockstep/train/session/end/pause.h"
#include "lockstep/train/session/end/run_end_client.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep::train {
namespace {

constexpr absl::Duration kDefaultMaxSilence = absl::Minutes(10);

// Logs that the chief has started or stopped answering. Returns how long to search for it from now on.
absl::Duration OnAnswer(const AwaitRunEndOptions& options, ChiefClient* client,
                        const absl::StatusOr<v1::RunStatus>& status, absl::Duration max_silence) {
  if (!status.ok()) {
    LOG(WARNING) << "waiting for the chief at " << options.master << ", up to " << absl::FormatDuration(max_silence)
                 << ": " << status.status().message();
    return max_silence;
  }
  const absl::StatusOr<v1::GetRunSpecReply> run = client->GetRunSpec();
  // Logged after the request, so that a chief that is stopped because of this line has already received it.
  LOG(INFO) << "the chief at " << options.master << " answers: step " << status->global_step();
  return options.max_silence || !run.ok() ? max_silence : absl::Seconds(run->spec().cluster().chief_wait_seconds());
}

absl::Status Wait(const AwaitRunEndOptions& options, ChiefClient* client) {
  const absl::Time began = options.clock->Now();
  absl::Time last_heard = began;
  bool heard = false;
  absl::optional<bool> answers;
  absl::Duration max_silence = options.max_silence.value_or(kDefaultMaxSilence);
  while (true) {
    const absl::StatusOr<v1::RunStatus> status = client->GetStatus();
    const absl::Time now = options.clock->Now();
    if (answers != status.ok()) max_silence = OnAnswer(options, client, status, max_silence);
    answers = status.ok();
    if (status.ok()) {
      last_heard = now;
      heard = true;
    } else if ((heard || now - began >= RunEndClient::kGrace) && !options.logdir.empty() &&
               RecordSaysFinished(options.fs, options.logdir)) {
      return absl::OkStatus();
    }
    // This status comes from the end mark in the address file. Waits before trusting it, because a restarted chief
    // removes the mark.
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
    if (now - last_heard > max_silence) {
      return absl::UnavailableError(absl::StrCat("nothing was heard of the chief at ", options.master, " for ",
                                                 absl::FormatDuration(now - last_heard), ": ",
                                                 status.status().message()));
    }
    RETURN_IF_ERROR(Pause(std::min(options.poll_interval, left), options.clock, options.stop));
  }
}

}  // namespace

absl::Status AwaitRunEnd(const AwaitRunEndOptions& options) {
  if (options.client != nullptr) return Wait(options, options.client);
  ASSIGN_OR_RETURN(const MasterAddress master, ParseMasterAddress(options.master));
  if (master.in_process()) {
    return absl::InvalidArgumentError("the master is empty: where is the chief whose run is waited for?");
  }
  GrpcClientOptions client_options;
  const std::string tls_dir = options.tls_dir.empty() ? TlsDirOfEnvironment() : options.tls_dir;
  ASSIGN_OR_RETURN(client_options.credentials, LoadClientCredentials(options.fs, tls_dir, /*token_file=*/""));
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefClient> client,
                   GrpcConnector(options.fs, client_options).Connect(master));
  return Wait(options, client.get());
}

}  // namespace lockstep::train
