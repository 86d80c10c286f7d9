#include "worker/session/training_worker.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/periodic_task.h"
#include "common/base/status_macros.h"
#include "common/config/compression.h"
#include "glog/logging.h"
#include "google/protobuf/util/message_differencer.h"

namespace lockstep {
namespace {

constexpr absl::Duration kDefaultChiefWait = absl::Seconds(600);
constexpr absl::Duration kMissingLogPeriod = absl::Seconds(5);
constexpr absl::Duration kMaxHeartbeatPeriod = absl::Seconds(1);

uint64_t DrawIncarnation() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace

void PrefetchFollowing(const Token& token, int64_t slot, BatchSource* batches) {
  int64_t step = token.step();
  for (int i = 0; i < 3; ++i) {
    if (++slot == token.first_slot() + token.slot_count()) {
      slot = token.first_slot();
      ++step;
    }
    batches->Prefetch(step, slot);
  }
}

TrainingWorker::TrainingWorker(Options options, ChiefClient* client)
    : options_(std::move(options)), client_(client), incarnation_(DrawIncarnation()) {}

absl::Duration TrainingWorker::chief_wait() const {
  if (options_.chief_wait) return *options_.chief_wait;
  return config_ ? absl::Seconds(config_->cluster().chief_wait_seconds()) : kDefaultChiefWait;
}

absl::Status TrainingWorker::Run() {
  {
    MutexLock lock(&mutex_);
    retries_.emplace(options_.chief_address, options_.clock->Now(), incarnation_);
  }
  absl::Time next_log = options_.clock->Now();
  while (true) {
    failed_here_ = false;
    const absl::Status status = RunSession();
    if (stop_requested_.load()) return absl::CancelledError("a stop was requested");
    if (status.ok() || failed_here_) return status;
    const absl::Time now = options_.clock->Now();
    MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(const absl::Duration delay, retries_->OnFailure(status, now, chief_wait()));
    if (absl::IsAborted(status)) {
      LOG(INFO) << options_.name << ": " << status.message() << "; opening a new session";
    } else if (now >= next_log) {
      LOG(WARNING) << options_.name << ": waiting for the chief at " << options_.chief_address << " (up to "
                   << absl::FormatDuration(absl::Trunc(chief_wait() - retries_->absence(), absl::Seconds(1)))
                   << " more): " << status.message();
      next_log = now + kMissingLogPeriod;
    }
    while (!stop_requested_.load() && !options_.clock->WaitUntil(&stop_, &mutex_, now + delay)) {
    }
  }
}

void TrainingWorker::Tell(void (SessionRetries::*event)()) {
  MutexLock lock(&mutex_);
  (*retries_.*event)();
}

absl::Status TrainingWorker::FailedHere(absl::Status status) {
  failed_here_ = !status.ok();
  return status;
}

absl::Status TrainingWorker::PrepareTask(const RunConfig& config) {
  if (config_ && google::protobuf::util::MessageDifferencer::Equals(*config_, config)) return absl::OkStatus();
  ASSIGN_OR_RETURN(task_, options_.make_task(config));
  ASSIGN_OR_RETURN(layout_, ParameterLayout::Create(task_.model->spec()));
  gradients_ = std::make_unique<BlockGradients>(&*layout_, &wanted_, CompressionOf(config.compression()));
  ASSIGN_OR_RETURN(transforms_, GradientTransforms::Create(config.optimizer(), task_.model->spec(), gradients_.get()));
  config_ = config;
  return absl::OkStatus();
}

absl::Status TrainingWorker::RunSession() {
  ASSIGN_OR_RETURN(const GetRunReply run, client_->GetRun());
  Tell(&SessionRetries::OnAnswer);
  RETURN_IF_ERROR(FailedHere(PrepareTask(run.config())));
  OpenSessionRequest request;
  request.set_worker(options_.name);
  request.set_incarnation(incarnation_);
  *request.mutable_model() = task_.model->spec();
  if (task_.data) *request.mutable_data() = *task_.data;
  ASSIGN_OR_RETURN(const OpenSessionReply session, client_->OpenSession(request));
  Tell(&SessionRetries::OnOpen);
  // As the chief shows it: whoever knows all of the id acts for this worker.
  LOG(INFO) << options_.name << ": session " << (session.session_id() & 0xffff) << " of epoch " << session.epoch()
            << " at step " << session.global_step();

  ChiefClient::StepOptions step_options;
  step_options.session_id = session.session_id();
  step_options.epoch = session.epoch();
  step_options.startup_delay_steps =
      options_.startup_delay_steps.value_or(run.config().training().startup_delay_steps());
  step_options.compression = CompressionOf(run.config().compression());
  if (session.has_shared_memory()) step_options.chief_memory = session.shared_memory();
  ASSIGN_OR_RETURN(const std::unique_ptr<StepChannel> channel,
                   client_->OpenStepChannel(step_options, task_.model->spec()));
  finished_ = false;
  SetChannel(channel.get());
  HeartbeatRequest heartbeat;
  heartbeat.set_session_id(session.session_id());
  heartbeat.set_epoch(session.epoch());
  PeriodicTask::Options periodic;
  periodic.clock = options_.clock;
  periodic.period = std::min(absl::Seconds(session.lease_seconds()) / 3, kMaxHeartbeatPeriod);
  periodic.first_at_once = false;
  PeriodicTask heartbeats(periodic, [this, &heartbeat] {
    const auto reply = client_->Heartbeat(heartbeat);
    if (reply.ok() && !computing_.load()) Tell(&SessionRetries::OnProgress);
    if (reply.ok() && reply->finished()) finished_ = true;
    if (absl::IsAborted(reply.status()) || finished_) wanted_ = false;
  });
  const absl::Status status = stop_requested_.load() ? absl::CancelledError() : ComputeBlocks(channel.get());
  SetChannel(nullptr);
  heartbeats.Stop();
  return status;
}

absl::Status TrainingWorker::ComputeBlocks(StepChannel* channel) {
  for (bool computed = false;; computed = true) {
    const auto assignment = channel->AwaitToken();
    const bool finished = assignment.ok() && assignment->finished;
    if (finished || stop_requested_.load()) channel->Leave();
    RETURN_IF_ERROR(assignment.status());
    if (computed) Tell(&SessionRetries::OnProgress);
    if (finished && assignment->finish_message.empty()) return absl::OkStatus();
    if (finished) return absl::InvalidArgumentError(assignment->finish_message);
    if (stop_requested_.load()) return absl::CancelledError();
    computing_ = true;
    const absl::Status status = ComputeBlock(channel, *assignment);
    computing_ = false;
    if (absl::IsCancelled(status) && stop_requested_.load()) {
      channel->Leave();  // nothing of the block was sent
      return status;
    }
    // The block is not wanted because the run is over: AwaitToken drops it and hears how it ended.
    if (absl::IsCancelled(status) && finished_.load()) continue;
    RETURN_IF_ERROR(status);
  }
}

absl::Status TrainingWorker::ComputeBlock(StepChannel* channel, const StepChannel::Assignment& assignment) {
  const Token& token = assignment.token;
  gradients_->BeginBlock(channel, token, assignment.estimates);
  for (int64_t slot = token.first_slot(); slot < token.first_slot() + token.slot_count(); ++slot) {
    const auto batch = task_.batches->Get(token.step(), slot);
    RETURN_IF_ERROR(FailedHere(batch.status()));
    if (!wanted_.load()) return absl::CancelledError("the block is not wanted");
    PrefetchFollowing(token, slot, task_.batches.get());
    gradients_->BeginSlot(slot);
    SlotKey key;
    key.seed = config_->training().seed();
    key.step = token.step();
    key.slot = slot;
    const absl::Status status = task_.model->ComputeGradients(assignment.values, *batch, key, transforms_.get());
    // The channel's word comes first: a broken stream is why the model was told to stop, or will be tried again.
    RETURN_IF_ERROR(gradients_->status());
    if (absl::IsCancelled(status)) return status;
    RETURN_IF_ERROR(FailedHere(status));
    slots_computed_.fetch_add(1, std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

void TrainingWorker::SetChannel(StepChannel* channel) {
  MutexLock lock(&mutex_);
  channel_ = channel;
  wanted_ = !stop_requested_.load();
}

void TrainingWorker::RequestStop() {
  MutexLock lock(&mutex_);
  const bool again = stop_requested_.exchange(true);
  wanted_ = false;
  if (channel_ != nullptr) again ? channel_->Cancel() : channel_->Interrupt();
  stop_.SignalAll();
}

}  // namespace lockstep
