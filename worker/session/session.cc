#include "lockstep/worker/session/session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "google/protobuf/util/message_differencer.h"
#include "lockstep/common/base/process/floating_point_mode.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/worker/session/canary.h"
#include "lockstep/worker/session/workload/model_parts.h"

namespace lockstep {
namespace {

constexpr absl::Duration kDefaultChiefWait = absl::Seconds(600);
constexpr absl::Duration kMissingLogPeriod = absl::Seconds(5);
constexpr absl::Duration kMaxHeartbeatPeriod = absl::Seconds(1);

}  // namespace

WorkerSession::WorkerSession(Options options, ChiefClient* client)
    : initial_values_(std::exchange(options.initial_values, nullptr)),
      initial_values_digest_(initial_values_ == nullptr ? "" : initial_values_->digest()),
      options_(std::move(options)),
      client_(client),
      incarnation_(options_.draw_incarnation()) {}

absl::Duration WorkerSession::chief_wait() const {
  if (options_.max_wait) return *options_.max_wait;
  return run_ ? absl::Seconds(config().cluster().chief_wait_seconds()) : kDefaultChiefWait;
}

absl::StatusOr<const config::v1::RunSpec*> WorkerSession::Connect() {
  {
    const absl::Time now = options_.clock->Now();
    MutexLock lock(&mutex_);
    if (!retries_) retries_.emplace(options_.chief_address, now, incarnation_);
  }
  ASSIGN_OR_RETURN(v1::GetRunSpecReply run, client_->GetRunSpec());
  run_ = std::move(run);
  MutexLock lock(&mutex_);
  retries_->OnAnswer();
  return &config();
}

v1::OpenSessionRequest WorkerSession::DeclarationOf(const Workload& workload) const {
  v1::OpenSessionRequest request;
  request.set_worker(options_.name);
  request.set_host(options_.host);
  *request.mutable_build() = options_.build;
  request.set_incarnation(incarnation_);
  request.set_changes(run_->changes());
  request.set_transforms_gradients(true);
  request.set_initial_values_digest(initial_values_digest_);
  *request.mutable_model() = workload.model->spec();
  for (v1::NamedDigest& part : ModelParts(config(), *workload.model)) *request.add_model_part() = std::move(part);
  if (workload.data) *request.mutable_data() = *workload.data;
  if (workload.framework) *request.mutable_framework() = *workload.framework;
  return request;
}

absl::StatusOr<v1::OpenSessionReply> WorkerSession::OpenChecked(const Workload& workload) {
  v1::OpenSessionRequest request = DeclarationOf(workload);
  *request.mutable_canary_digest() = checked_.canary_digest();
  if (!google::protobuf::util::MessageDifferencer::Equals(request, checked_)) request.clear_canary_digest();
  ASSIGN_OR_RETURN(v1::OpenSessionReply session, OpenWithValues(request));
  if (!session.canary_wanted()) return session;
  ASSIGN_OR_RETURN(const std::vector<uint64_t> canary,
                   ComputeCanary(config(), workload, session, stop_requested_, client_));
  *request.mutable_canary_digest() = {canary.begin(), canary.end()};
  checked_ = std::move(request);
  // Another chief may have taken over since the first call.
  return OpenWithValues(checked_);
}

absl::StatusOr<v1::OpenSessionReply> WorkerSession::OpenWithValues(const v1::OpenSessionRequest& declaration) {
  ASSIGN_OR_RETURN(v1::OpenSessionReply session, CallOpenSession(declaration));
  if (!session.initial_values_wanted()) return session;
  if (initial_values_ == nullptr) {
    return absl::FailedPreconditionError(
        "the chief wants the initial values of a run that this worker has already served");
  }
  LOG(INFO) << options_.name << ": sending the initial values " << initial_values_digest_;
  RETURN_IF_ERROR(initial_values_->Send(declaration.model(), session, stop_requested_, client_));
  ASSIGN_OR_RETURN(session, CallOpenSession(declaration));
  if (session.initial_values_wanted()) return absl::UnavailableError("the chief has forgotten the initial values");
  return session;
}

void WorkerSession::EndInitialValues() {
  if (initial_values_ == nullptr) return;
  initial_values_.reset();
  // A run with a warm start never takes a worker's values.
  if (!config().checkpoint().warm_start().empty()) return;
  const std::string& of_run = opened_.initial_values_digest();
  LOG_IF(INFO, of_run != initial_values_digest_) << options_.name << ": the initial values " << initial_values_digest_
                                                 << " of this worker are not used: the run began "
                                                 << (of_run.empty() ? "without values of a worker" : "from " + of_run);
}

absl::StatusOr<v1::OpenSessionReply> WorkerSession::CallOpenSession(v1::OpenSessionRequest declaration) {
  {
    MutexLock lock(&mutex_);
    declaration.set_run_id(run_id_);
    declaration.set_last_step(last_step_);
  }
  ASSIGN_OR_RETURN(v1::OpenSessionReply session, client_->OpenSession(declaration));
  MutexLock lock(&mutex_);
  digest_of_run_ = session.initial_values_digest();
  return session;
}

absl::Status WorkerSession::Open(const Workload& workload) {
  RETURN_IF_ERROR(CheckFloatingPointMode());
  ASSIGN_OR_RETURN(opened_, OpenChecked(workload));
  {
    MutexLock lock(&mutex_);
    retries_->OnOpen();
    run_id_ = opened_.run_id();
    last_step_ = opened_.global_step();
    open_.emplace();
    open_->set_session_id(opened_.session_id());
    open_->set_generation(opened_.generation());
  }
  // Logs only the low 16 bits of the id, as the chief does, because the whole id is a secret.
  LOG(INFO) << options_.name << ": session " << (opened_.session_id() & 0xffff) << " of generation "
            << opened_.generation() << " at step " << opened_.global_step();
  EndInitialValues();
  RETURN_IF_ERROR(OpenStream(workload));
  StartHeartbeats();
  return absl::OkStatus();
}

absl::Status WorkerSession::OpenStream(const Workload& workload) {
  channel_.reset();
  batches_ = workload.batches.get();
  ASSIGN_OR_RETURN(channel_, client_->OpenStepChannel(NewStepOptions(), workload.model->spec()));
  return absl::OkStatus();
}

ChiefClient::StepOptions WorkerSession::NewStepOptions() const {
  ChiefClient::StepOptions options;
  options.session_id = opened_.session_id();
  options.generation = opened_.generation();
  options.startup_delay_steps = options_.startup_delay_steps.value_or(config().training().startup_delay_steps());
  options.slots = config().training().replicas_to_aggregate();
  options.compression = CompressionOf(config().compression());
  if (opened_.has_shared_memory()) options.chief_memory = opened_.shared_memory();
  options.clock = options_.clock;
  options.idle = [this] { return batches_ != nullptr && batches_->PrepareIfBrief(); };
  return options;
}

void WorkerSession::StartHeartbeats() {
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_session_id(opened_.session_id());
  heartbeat.set_generation(opened_.generation());
  PeriodicTask::Options periodic;
  periodic.clock = options_.clock;
  periodic.executor = options_.executor;
  periodic.name = "heartbeats";
  periodic.period = std::min(absl::Seconds(opened_.lease_seconds()) / 3, kMaxHeartbeatPeriod);
  periodic.first_at_once = false;
  heartbeats_ = std::make_unique<PeriodicTask>(periodic, [this, heartbeat]() mutable {
    heartbeat.set_paused(options_.is_paused && options_.is_paused());
    const absl::StatusOr<v1::HeartbeatReply> reply = client_->Heartbeat(heartbeat);
    if (reply.ok()) OnStep(reply->global_step());
    if (options_.on_heartbeat(reply)) OnProgress();
  });
}

absl::Status WorkerSession::RequestFinish(const std::string& reason) {
  absl::optional<v1::RequestEndRequest> request;
  {
    MutexLock lock(&mutex_);
    request = open_;
  }
  if (!request) return absl::UnavailableError("there is no session with a chief at this moment");
  request->set_reason(reason);
  return client_->RequestFinish(*request).status();
}

absl::Status WorkerSession::AddSummary(const v1::Summary& summary, absl::optional<int64_t> global_step) {
  v1::AddSummaryRequest request;
  {
    MutexLock lock(&mutex_);
    if (!open_) return absl::UnavailableError("there is no session with a chief at this moment");
    request.set_session_id(open_->session_id());
    request.set_generation(open_->generation());
  }
  request.set_summary(summary.SerializeAsString());
  if (global_step) request.set_global_step(*global_step);
  return client_->AddSummary(request).status();
}

void WorkerSession::Close() {
  {
    MutexLock lock(&mutex_);
    open_.reset();
  }
  heartbeats_.reset();
  channel_.reset();
}

void WorkerSession::OnStep(int64_t step) {
  MutexLock lock(&mutex_);
  last_step_ = std::max(last_step_, step);
}

void WorkerSession::OnProgress() {
  MutexLock lock(&mutex_);
  retries_->OnProgress();
}

std::string WorkerSession::initial_values_digest() {
  MutexLock lock(&mutex_);
  return digest_of_run_;
}

int64_t WorkerSession::generation() {
  MutexLock lock(&mutex_);
  return open_ ? open_->generation() : 0;
}

absl::Status WorkerSession::AwaitRetry(const absl::Status& ended) {
  const absl::Time now = options_.clock->Now();
  absl::Duration delay, absence;
  {
    MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(delay, retries_->OnFailure(ended, now, chief_wait()));
    absence = retries_->absence();
  }
  if (IsEndOfRun(ended)) {
    LOG_IF(INFO, now >= next_log_) << options_.name << ": " << ended.message()
                                   << "; looking once more, as a chief that continues it may be starting";
    next_log_ = std::max(next_log_, now + SessionRetries::kEndGrace);
  } else if (absl::IsAborted(ended)) {
    LOG(INFO) << options_.name << ": " << ended.message() << "; opening a new session";
  } else if (now >= next_log_) {
    LOG(WARNING) << options_.name << ": waiting for the chief at " << options_.chief_address << " (up to "
                 << absl::FormatDuration(absl::Trunc(chief_wait() - absence, absl::Seconds(1)))
                 << " more): " << ended.message();
    next_log_ = now + kMissingLogPeriod;
  }
  MutexLock lock(&mutex_);
  while (!stop_requested_.load() && !options_.clock->WaitUntil(&stop_, &mutex_, now + delay)) {
  }
  return absl::OkStatus();
}

void WorkerSession::RequestStop() {
  {
    MutexLock lock(&mutex_);
    stop_requested_ = true;
    stop_.SignalAll();
  }
  client_->CancelConnecting();
}

}  // namespace lockstep
