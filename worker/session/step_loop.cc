#include "lockstep/worker/session/step_loop.h"

#include <utility>

#include "lockstep/common/base/process/trace_recorder.h"
#include "lockstep/common/cluster/replaced_chief.h"

namespace lockstep {

using Effects = WorkerProtocol::Effects;

StepLoop::StepLoop(Options options) : options_(std::move(options)) {}

Effects StepLoop::Compute(const StepChannel::Assignment& assignment, StepChannel* channel, BlockComputer** computer) {
  if (assignment.settings) {
    const auto adapted = options_.adapt(*assignment.settings);
    if (!adapted.ok()) return OnBlock({adapted.status(), /*own=*/true});
    *computer = *adapted;
  }
  if (options_.observer == nullptr) return OnBlock((*computer)->Compute(assignment, channel));
  BlockAdditions additions;
  paused_ = true;
  const BlockObserver::Decision decision = options_.observer->BeforeBlock(assignment.token, &additions);
  paused_ = false;
  switch (decision) {
    case BlockObserver::Decision::kStop:
      return OnBlock({absl::CancelledError("a stop was requested")});
    case BlockObserver::Decision::kGiveBack: {
      MutexLock lock(&mutex_);
      return protocol_.OnGivenBack();
    }
    case BlockObserver::Decision::kCompute:
      break;
  }
  const BlockComputer::Result result = (*computer)->Compute(assignment, channel, additions);
  if (result.status.ok()) {
    options_.observer->AfterBlock(assignment.token, (*computer)->mean_loss());
  } else {
    options_.observer->OnBlockLost();
  }
  return OnBlock(result);
}

SessionEnd StepLoop::Run(std::shared_ptr<StepChannel> channel, BlockComputer* computer, bool goes_on) {
  const Effects effects = Open(channel, /*reopened=*/false);
  if (options_.observer != nullptr) options_.observer->OnSession(goes_on);
  return RunStream(effects, channel.get(), computer);
}

SessionEnd StepLoop::Resume(std::shared_ptr<StepChannel> channel, BlockComputer* computer) {
  return RunStream(Open(channel, /*reopened=*/true), channel.get(), computer);
}

SessionEnd StepLoop::RunStream(Effects effects, StepChannel* channel, BlockComputer* computer) {
  absl::StatusOr<StepChannel::Assignment> assignment = absl::UnknownError("");
  while (true) {
    switch (effects.next) {
      case Effects::Next::kCompute:
        effects = Compute(*assignment, channel, &computer);
        break;
      case Effects::Next::kAwaitToken: {
        TraceSpan span("wait");
        assignment = channel->AwaitToken();
      }
        if (options_.observer != nullptr && assignment.ok()) options_.observer->OnResult(assignment->result);
        effects = OnAssignment(assignment);
        if (options_.on_step && effects.next == Effects::Next::kCompute) options_.on_step(assignment->token.step());
        break;
      case Effects::Next::kNothing:
      case Effects::Next::kEnd:
        Close();
        return effects.end;
    }
    if (effects.leave) channel->Leave();
    if (effects.progress) options_.on_progress();
  }
}

Effects StepLoop::Open(std::shared_ptr<StepChannel> channel, bool reopened) {
  MutexLock lock(&mutex_);
  channel_ = std::move(channel);
  wanted_ = !protocol_.stopping();
  return reopened ? protocol_.OnReopen() : protocol_.OnOpen();
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
  if (over && options_.observer != nullptr) options_.observer->OnRunOver();
  Effects effects;
  std::shared_ptr<StepChannel> channel;
  {
    MutexLock lock(&mutex_);
    if (IsChiefReplaced(reply.status())) {
      effects = protocol_.OnReplaced(reply.status());
    } else {
      const bool ended = reply.ok() && reply->has_ended();
      effects =
          protocol_.OnHeartbeat(reply.status(), over, ended ? absl::make_optional(reply->ended()) : absl::nullopt);
    }
    if (effects.drop) wanted_ = false;
    channel = channel_;
  }
  if (effects.cancel && channel != nullptr) channel->Cancel();
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
