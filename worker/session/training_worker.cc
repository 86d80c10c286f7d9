#include "lockstep/worker/session/training_worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/util/message_differencer.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/address_file.h"

namespace lockstep {
namespace {

using google::protobuf::util::MessageDifferencer;

WorkerSession::Options SessionOptions(WorkerSession::Options session, StepLoop* loop) {
  session.on_heartbeat = [loop](const absl::StatusOr<v1::HeartbeatReply>& reply) { return loop->OnHeartbeat(reply); };
  session.is_paused = [loop] { return loop->paused(); };
  return session;
}

StepLoop::Options LoopOptions(WorkerSession* session, StepLoop::Adapter adapt, BlockObserver* observer) {
  StepLoop::Options loop;
  loop.on_progress = [session] { session->OnProgress(); };
  loop.on_step = [session](int64_t step) { session->OnStep(step); };
  loop.adapt = std::move(adapt);
  loop.observer = observer;
  return loop;
}

}  // namespace

TrainingWorker::TrainingWorker(const Options& options, ChiefClient* client)
    : name_(options.name),
      make_workload_(options.make_workload),
      observer_(options.observer),
      loop_(LoopOptions(
          &session_, [this](const v1::GradientSettings& settings) { return Adapt(settings); }, options.observer)),
      session_(SessionOptions(options, &loop_), client) {}

absl::Status TrainingWorker::Run() {
  while (!session_.stop_requested()) {
    const SessionEnd end = RunSession();
    if (session_.stop_requested()) break;
    if (end.final) return end.status;
    if (!absl::IsAborted(end.status)) generation_ = 0;
    const absl::Status retry = session_.AwaitRetry(end.status);
    if (IsEndOfRun(retry) && absl::IsOutOfRange(retry)) {
      LOG(INFO) << name_ << ": " << retry.message();
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(retry);
  }
  return absl::CancelledError("a stop was requested");
}

SessionEnd TrainingWorker::RunSession() {
  const auto config = session_.Connect();
  if (!config.ok()) return {config.status()};
  absl::Status status = Prepare(**config);
  if (!status.ok()) return {std::move(status), /*final=*/true};
  status = session_.Open(computer_->workload());
  if (!status.ok()) return {std::move(status)};
  const int64_t before = std::exchange(generation_, session_.generation());
  SessionEnd end = loop_.Run(session_.channel(), computer_.get(), /*goes_on=*/generation_ == before);
  while (end.given_back && observer_->AwaitDemand()) {
    status = session_.OpenStream(computer_->workload());
    end = status.ok() ? loop_.Resume(session_.channel(), computer_.get()) : SessionEnd{std::move(status)};
  }
  session_.Close();
  return end;
}

absl::Status TrainingWorker::Prepare(const config::v1::RunSpec& config) {
  if (config_ && MessageDifferencer::Equals(*config_, config)) return absl::OkStatus();
  ASSIGN_OR_RETURN(Workload workload, make_workload_(config));
  ASSIGN_OR_RETURN(computer_, BlockComputer::Create(config, std::move(workload), &loop_.wanted(), &slots_computed_));
  config_ = config;
  return absl::OkStatus();
}

absl::StatusOr<BlockComputer*> TrainingWorker::Adapt(const v1::GradientSettings& settings) {
  config::v1::RunSpec config = *config_;
  *config.mutable_optimizer()->mutable_multipliers() = settings.multipliers();
  config.mutable_optimizer()->clear_clip();
  if (settings.has_clip()) *config.mutable_optimizer()->mutable_clip() = settings.clip();
  if (settings.batch_size() == config.input().batch_size()) {
    RETURN_IF_ERROR(computer_->SetTransforms(config.optimizer()));
    config_ = std::move(config);
    return computer_.get();
  }
  config.mutable_input()->set_batch_size(settings.batch_size());
  const v1::ModelSpec model = computer_->workload().model->spec();
  RETURN_IF_ERROR(Prepare(config));
  if (!MessageDifferencer::Equals(model, computer_->workload().model->spec())) {
    return absl::FailedPreconditionError(
        absl::StrCat("with batches of ", settings.batch_size(), " examples the worker's model has other variables"));
  }
  session_.UseBatches(computer_->workload().batches.get());
  return computer_.get();
}

void TrainingWorker::RequestStop() {
  session_.RequestStop();
  loop_.RequestStop();
}

}  // namespace lockstep
