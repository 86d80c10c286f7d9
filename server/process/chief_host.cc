#include "lockstep/server/process/chief_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/connection/credentials.h"
#include "lockstep/server/chief/ownership/predecessor_watch.h"
#include "lockstep/server/chief/run/run_directory.h"
#include "lockstep/server/rpc/chief_server.h"

namespace lockstep {
namespace {

constexpr absl::Duration kPredecessorPeriod = absl::Milliseconds(50);
constexpr absl::Duration kMaxBeatPeriod = absl::Seconds(1);

void LogIfNot(const absl::Status& ok) { LOG_IF(ERROR, !ok.ok()) << "chief: " << ok.message(); }

}  // namespace

ServeFunction ServeOverGrpc(const ServeOptions& serve) {
  return [serve](const std::string& listen, Chief* chief) -> absl::StatusOr<ServedChief> {
    ChiefServer::Options options;
    options.address = listen;
    options.step_threads = serve.step_threads;
    options.credentials = Credentials(serve.security.tls_dir);
    options.peers.token_file = serve.security.token_file;
    ASSIGN_OR_RETURN(auto server, ChiefServer::Start(options, chief));
    ServedChief served{server->address(), server->port(), server->listening(), nullptr};
    served.server = std::move(server);
    return served;
  };
}

absl::Duration BeatPeriod(const config::v1::RunSpec& config) {
  return std::min(absl::Seconds(config.cluster().lease_seconds()) / 4, kMaxBeatPeriod);
}

ChiefHost::ChiefHost(Options options) : options_(std::move(options)) {
  options_.chief.on_accepted = [this] { return address_file_->Prepare(); };
  if (!options_.watch_signals) return;
  // While a chief is being created, for example during the restore of a large checkpoint, everything worth saving is
  // already on disk.
  const absl::Duration limit = absl::Seconds(options_.chief.config.checkpoint().stop_seconds()) + kEndingLimit;
  TerminationWatch::Options watch;
  watch.on_stop = [this] { RequestStop(); };
  watch.on_save = [this] { RequestSave(); };
  watch.second_exit_code = [this] { return second_exit_code_.load(); };
  watch.limit = [limit] { return limit; };
  watch_.emplace(std::move(watch));
}

ChiefHost::~ChiefHost() {
  // A chief that has not written its address leaves the file unchanged.
  if (address_file_) LogIfNot(address_file_->PutBack());
  served_.server.reset();
  {
    MutexLock lock(&mutex_);
    running_ = nullptr;
  }
  // Destroys the chief without holding the lock; otherwise, a second Ctrl-C would also wait for the files.
  if (disk_hangs_) {
    (void)chief_.release();
  } else {
    chief_.reset();
  }
}

void ChiefHost::RequestStop() {
  LOG(INFO) << "chief: terminating; Ctrl-C once more ends at once";
  MutexLock lock(&mutex_);
  stop_requested_ = true;
  stop_.SignalAll();
  if (running_ != nullptr) running_->ends()->RequestStop();
}

void ChiefHost::StopRun() {
  MutexLock lock(&mutex_);
  stop_requested_ = true;
  stop_.SignalAll();
  if (running_ != nullptr) running_->ends()->RequestStopUnlessOver();
}

void ChiefHost::RequestSave() {
  LOG(INFO) << "chief: "
            << (options_.chief.logdir.empty() ? "there is no logdir to save to; continues"
                                              : "saves now, and continues");
  MutexLock lock(&mutex_);
  save_requested_ = true;
  if (running_ != nullptr) running_->RequestSave();
}

void ChiefHost::AwaitPredecessor() {
  const Chief::Options& chief = options_.chief;
  const auto is_held = [&chief] { return RunDirectory::IsHeld(chief.fs, chief.logdir); };
  if (chief.logdir.empty() || options_.predecessor_limit <= absl::ZeroDuration() || !is_held()) return;
  LOG(INFO) << "chief: another chief is still ending in " << chief.logdir << "; waiting up to "
            << options_.predecessor_limit << " for it";
  const absl::Time deadline = chief.clock->Now() + options_.predecessor_limit;
  while (Pause() && chief.clock->Now() < deadline && is_held()) {
  }
}

bool ChiefHost::Pause() {
  Clock* const clock = options_.chief.clock;
  MutexLock lock(&mutex_);
  const absl::Time next = clock->Now() + kPredecessorPeriod;
  while (!stop_requested_ && !clock->WaitUntil(&stop_, &mutex_, next)) {
  }
  return !stop_requested_;
}

void ChiefHost::StandBy() {
  Chief::Options& chief = options_.chief;
  const absl::Duration limit = absl::Seconds(chief.config.cluster().lease_seconds());
  const auto is_held = [&chief] { return RunDirectory::IsHeld(chief.fs, chief.logdir); };
  PredecessorWatch watch(chief.fs, chief.clock, chief.logdir, limit);
  chief.replaces.reset();
  for (bool first = true;; first = false) {
    switch (watch.Look(is_held)) {
      case PredecessorWatch::State::kGone:
        return;
      case PredecessorWatch::State::kSilent:
        chief.replaces = watch.generation();
        LOG(WARNING) << "chief: generation " << watch.generation() << " in " << chief.logdir << " is silent for "
                     << limit << "; takes over";
        return;
      case PredecessorWatch::State::kRuns:
        break;
    }
    LOG_IF(INFO, first) << "chief: stands by for the chief in " << chief.logdir;
    if (!Pause()) return;
  }
}

absl::StatusOr<std::unique_ptr<Chief>> ChiefHost::CreateChief() {
  while (true) {
    options_.standby ? StandBy() : AwaitPredecessor();
    {
      MutexLock lock(&mutex_);
      if (stop_requested_) return absl::CancelledError("stopped before the chief was created");
    }
    auto chief = Chief::Create(options_.chief);
    const absl::Status& status = chief.status();
    const bool late = absl::IsFailedPrecondition(status) && ExitCodeOf(status) == kExitRetryable;
    // If the disk is full or failing, the silent chief still has its lock.
    const bool disk = absl::IsResourceExhausted(status) || absl::IsInternal(status);
    const bool kept = options_.chief.replaces && disk && RunDirectory::IsHeld(options_.chief.fs, options_.chief.logdir);
    if (!options_.standby || !(late || kept)) return chief;
    LOG(INFO) << "chief: " << status.message();
    if (!Pause()) return absl::CancelledError("stopped before the chief was created");
  }
}

absl::Status ChiefHost::Create() {
  if (options_.standby && options_.chief.logdir.empty()) {
    return absl::InvalidArgumentError("a standby needs the logdir of its chief: --logdir");
  }
  RETURN_IF_ERROR(
      CheckServeSecurity(options_.chief.fs, options_.security, options_.listen, options_.chief.clock->WallTime()));
  AddressFile::Options address_file = options_.address_file;
  address_file.fs = options_.chief.fs;
  address_file.machine = options_.chief.machine.host;
  ASSIGN_OR_RETURN(address_file_, AddressFile::Create(std::move(address_file), options_.listen));
  ASSIGN_OR_RETURN(chief_, CreateChief());
  second_exit_code_ = kExitFailed;
  MutexLock lock(&mutex_);
  running_ = chief_.get();
  if (stop_requested_) running_->ends()->RequestStop();
  if (save_requested_) running_->RequestSave();
  return absl::OkStatus();
}

absl::Status ChiefHost::Serve() {
  ASSIGN_OR_RETURN(served_, options_.serve(options_.listen, chief_.get()));
  const Chief::Options& chief = options_.chief;
  LOG(INFO) << "chief: run " << chief_->GetStatus().run_id() << ", generation " << chief_->generation()
            << ", listening on " << served_.address << ", " << chief.config.training().replicas_to_aggregate()
            << " slots a step, " << TrainingLengthText(chief.config.training())
            << (chief.logdir.empty() ? "" : absl::StrCat(", logdir ", chief.logdir));
  RETURN_IF_ERROR(address_file_->Write(served_.address));
  if (options_.port_file.empty()) return absl::OkStatus();
  return WriteFileAtomically(chief.fs, options_.port_file, absl::StrCat(served_.port, "\n"));
}

void ChiefHost::MarkEnd(const absl::Status& run) {
  if (address_file_) LogIfNot(address_file_->End(run));
  address_file_.reset();
}

absl::Status ChiefHost::Wait() {
  absl::Status status = chief_->ends()->Wait();
  disk_hangs_ = absl::IsDeadlineExceeded(status);
  if (disk_hangs_) status = AsDiskHang(std::move(status));
  // Everything that can be saved has been saved.
  second_exit_code_ = ExitCode(status);
  return status;
}

void ChiefHost::LogFinish() const {
  const v1::RunStatus end = chief_->GetStatus();
  LOG(INFO) << "chief: finished at step " << end.global_step() << (end.message().empty() ? "" : ": ") << end.message();
}

int ChiefHost::ExitCode(const absl::Status& status) const {
  if (absl::IsDeadlineExceeded(status)) return kExitFailed;
  if (chief_ != nullptr || status.ok() || absl::IsCancelled(status)) return ExitCodeOf(status);
  // The chief could not be created. An I/O error may be temporary.
  if (absl::IsInternal(status)) return kExitRetryable;
  // Another chief holds the logdir, but may exit.
  if (absl::IsFailedPrecondition(status) && ExitCodeOf(status) == kExitRetryable) return kExitRetryable;
  return absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) ? kExitBadConfiguration : kExitFailed;
}

}  // namespace lockstep
