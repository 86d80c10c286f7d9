#include "lockstep/train/session/open_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/server/rpc/admission/listen_address.h"
#include "lockstep/server/sync/machine/step_machine.h"
#include "lockstep/train/session/chief_session.h"
#include "lockstep/train/session/worker_session.h"

namespace lockstep::train {
namespace {

absl::Status CheckChief(const SessionOptions& options) {
  if (!options.master.empty())
    return WrongOption("master", "is the chief itself, and empty; workers connect to `listen`");
  if (!options.listen.empty()) {
    const absl::Status listen = CheckListenAddresses(options.listen);
    if (!listen.ok()) return WrongOption("listen", listen.message());
  }
  if (!options.address_file.empty() && options.listen.empty()) {
    return WrongOption("address_file", "is for workers, and `listen` is empty: none can connect");
  }
  if (!options.advertise.empty() && options.address_file.empty()) {
    return WrongOption("advertise", "is written to `address_file`, which is empty");
  }
  if (options.checkpoint_basename.empty() || absl::StrContains(options.checkpoint_basename, '/')) {
    return WrongOption("checkpoint_basename",
                       absl::StrCat("is \"", options.checkpoint_basename, "\", must be a name without a directory"));
  }
  RETURN_IF_ERROR(CheckNotNegative("local_workers", options.local_workers));
  if (options.local_workers == 0 && options.listen.empty()) {
    return WrongOption("local_workers", "is 0 and `listen` is empty: nobody would compute");
  }
  if (!options.summary_dir.empty() && options.summary_writer) {
    return WrongOption("summary_dir",
                       absl::StrCat("is ", options.summary_dir, ", and summary_writer is given; give one"));
  }
  RETURN_IF_ERROR(CheckNotNegative("keep_checkpoint_every", options.keep_checkpoint_every));
  return absl::OkStatus();
}

absl::Status CheckWorker(const SessionOptions& options) {
  if (options.master.empty())
    return WrongOption("master", "is empty; a worker's is its chief's, such as grpc://127.0.0.1:2222");
  if (!options.listen.empty()) return WrongOption("listen", "is the chief's; a worker only connects");
  return ParseMasterAddress(options.master).status();
}

}  // namespace

void AllowStop(const SessionOptions& options, absl::Duration grace) {
  if (options.stop == nullptr) return;
  const absl::Duration save = absl::Seconds(options.op.spec.checkpoint().stop_seconds());
  options.stop->Allow(std::max(grace, save) + kEndingLimit);
}

absl::Status WrongOption(absl::string_view option, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(option, ": ", why));
}

absl::Status CheckNotNegative(absl::string_view option, int64_t value) {
  return value >= 0 ? absl::OkStatus() : WrongOption(option, absl::StrCat(value, ", must be 0 or more"));
}

absl::Status CheckNotNegative(absl::string_view option, absl::Duration value) {
  if (value >= absl::ZeroDuration()) return absl::OkStatus();
  return WrongOption(option, absl::StrCat(absl::FormatDuration(value), ", must be 0 or more"));
}

absl::Status CheckSessionOptions(const SessionOptions& options) {
  RETURN_IF_ERROR(CheckNotNegative("compute_threads", options.compute_threads));
  return options.is_chief ? CheckChief(options) : CheckWorker(options);
}

absl::StatusOr<std::unique_ptr<Session>> OpenSession(SessionOptions options) {
  RETURN_IF_ERROR(CheckSessionOptions(options));
  if (!options.is_chief) return WorkerSession::Open(std::move(options));
  ASSIGN_OR_RETURN(auto session, ChiefSession::Open(std::move(options)));
  session->AllowThrough(StepMachine::kNoLimit);
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace lockstep::train
