#include "lockstep/worker/session/step_loop.h"

#include <utility>

#include "lockstep/common/base/process/trace_recorder.h"

namespace lockstep {

using Effects = WorkerProtocol::Effects;

StepLoop::StepLoop(std::function<void()> on_progress, Adapter adapt, BlockObserver* observer)
    : on_progress_(std::move(on_progress)), adapt_(std::move(adapt)), observer_(observer) {}

BlockComputer::Result StepLoop::Compute(const StepChannel::Assignment& assignment, StepChannel* channel,
                                        BlockComputer** computer) {
  if (assignment.settings) {
    const auto adapted = adapt_(*assignment.settings);
    if (!adapted.ok()) return {adapted.status(), /*own=*/true};
    *computer = *adapted;
  }
  if (observer_ == nullptr) return (*computer)->Compute(assignment, channel);
  BlockAdditions additions;
  paused_ = true;
  const bool computes = observer_->BeforeBlock(assignment.token, &additions);
  paused_ = false;
  if (!computes) return {absl::CancelledError("a stop was requested")};
  BlockComputer::Result result = (*computer)->Compute(assignment, channel, additions);
  if (result.status.ok()) observer_->AfterBlock(assignment.token, (*computer)->mean_loss());
  return result;
}

SessionEnd StepLoop::Run(std::shared_ptr<StepChannel> channel, BlockComputer* computer, bool goes_on) {
  Effects effects = Open(channel);
  if (observer_ != nullptr) observer_->OnSession(goes_on);
  absl::StatusOr<StepChannel::Assignment> assignment = absl::UnknownError("");
  while (true) {
    switch (effects.next) {
      case Effects::Next::kCompute:
        effects = OnBlock(Compute(*assignment, channel.get(), &computer));
        break;
      case Effects::Next::kAwaitToken: {
        TraceSpan span("wait");
        assignment = channel->AwaitToken();
      }
        if (observer_ != nullptr && assignment.ok()) observer_->OnResult(assignment->result);
        effects = OnAssignment(assignment);
        break;
      case Effects::Next::kNothing:
      case Effects::Next::kEnd:
        Close();
        return effects.end;
    }
    if (effects.leave) channel->Leave();
    if (effects.progress) on_progress_();
  }
}

Effects StepLoop::Open(std::shared_ptr<StepChannel> channel) {
  MutexLock lock(&mutex_);
  channel_ = std::move(channel);
  wanted_ = !protocol_.stopping();
  return protocol_.OnOpen();
}

Effects StepLoop::OnAssignment(const absl::StatusOr<StepChannel::Assignment>& assignment) {
  MutexLock lock(&mutex_);
  if (!assignment.ok()) return protocol_.OnError(assignment.status());
  return assignment->finished ? protocol_.OnFinished(assignment->finish_message) : protocol_.OnToken();
}

Effects StepLoop::OnBlock(const BlockComputer::Result& result) {
  MutexLock lock(&mutex_);
  return protocol_.OnBlock(result.status, result.own);
}

void StepLoop::Close() {
  std::shared_ptr<StepChannel> closed;
  MutexLock lock(&mutex_);
  closed = std::move(channel_);
}

bool StepLoop::OnHeartbeat(const absl::StatusOr<v1::HeartbeatReply>& reply) {
  const bool over = reply.ok() && reply->finished();
  if (over && observer_ != nullptr) observer_->OnRunOver();
  MutexLock lock(&mutex_);
  const bool ended = reply.ok() && reply->has_ended();
  const Effects effects =
      protocol_.OnHeartbeat(reply.status(), over, ended ? absl::make_optional(reply->ended()) : absl::nullopt);
  if (effects.drop) wanted_ = false;
  return effects.progress;
}

void StepLoop::RequestStop() {
  Effects effects;
  std::shared_ptr<StepChannel> channel;
  {
    MutexLock lock(&mutex_);
    effects = protocol_.OnStop();
    wanted_ = false;
    channel = channel_;
  }
  if (effects.cancel_wait && channel != nullptr) channel->CancelWait();
  if (effects.cancel && channel != nullptr) channel->Cancel();
}

}  // namespace lockstep
