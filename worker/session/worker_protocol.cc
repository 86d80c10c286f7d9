#include "lockstep/worker/session/worker_protocol.h"

#include <utility>

#include "glog/logging.h"

namespace lockstep {

using Effects = WorkerProtocol::Effects;

Effects WorkerProtocol::Await() {
  phase_ = Phase::kAwaiting;
  Effects effects;
  effects.next = Effects::Next::kAwaitToken;
  return effects;
}

Effects WorkerProtocol::End(absl::Status status, bool final, bool leave) {
  phase_ = Phase::kClosed;
  Effects effects;
  effects.next = Effects::Next::kEnd;
  effects.leave = leave;
  effects.end = {std::move(status), final};
  return effects;
}

Effects WorkerProtocol::EndOfRun(const std::string& message, bool leave) {
  return End(message.empty() ? absl::OkStatus() : absl::InvalidArgumentError(message), true, leave);
}

Effects WorkerProtocol::OnOpen() {
  CHECK(phase_ == Phase::kClosed) << "a session is open";
  finished_ = false;
  ended_.reset();
  replaced_.reset();
  return OnReopen();
}

Effects WorkerProtocol::OnReopen() {
  CHECK(phase_ == Phase::kClosed) << "a session is open";
  computed_ = false;
  return stopping() ? End(absl::CancelledError("a stop was requested"), false, /*leave=*/false) : Await();
}

Effects WorkerProtocol::OnToken() {
  CHECK(phase_ == Phase::kAwaiting) << "a token that was not awaited";
  Effects effects;
  if (stopping()) {
    effects = End(absl::CancelledError("a stop was requested"), false, /*leave=*/true);
  } else {
    phase_ = Phase::kComputing;
    effects.next = Effects::Next::kCompute;
  }
  effects.progress = std::exchange(computed_, false);
  return effects;
}

Effects WorkerProtocol::OnFinished(const std::string& message) {
  CHECK(phase_ == Phase::kAwaiting) << "an end that was not awaited";
  return EndOfRun(message, /*leave=*/true);
}

Effects WorkerProtocol::OnError(absl::Status status) {
  CHECK(phase_ == Phase::kAwaiting) << "an error of a wait that was not begun";
  if (ended_) return EndOfRun(*ended_, /*leave=*/stopping());
  const bool taken = computed_ && absl::IsAborted(status);
  Effects effects = End(replaced_.value_or(std::move(status)), false, /*leave=*/stopping());
  effects.progress = taken;
  return effects;
}

Effects WorkerProtocol::OnGivenBack() {
  CHECK(phase_ == Phase::kComputing) << "there is no block to give back";
  Effects effects = End(absl::CancelledError("the block was given back"), false, /*leave=*/true);
  effects.end.given_back = true;
  return effects;
}

Effects WorkerProtocol::OnBlock(absl::Status status, bool own) {
  CHECK(phase_ == Phase::kComputing) << "a block that was not asked for";
  computed_ = true;
  if (status.ok()) return Await();
  const bool dropped = absl::IsCancelled(status) && !own;
  if (dropped && stopping()) return End(std::move(status), false, /*leave=*/true);
  if (dropped && finished_) return Await();
  if (ended_ && !own) return EndOfRun(*ended_, /*leave=*/false);
  if (replaced_ && !own) return End(*replaced_, false, /*leave=*/false);
  return End(std::move(status), own, /*leave=*/false);
}

Effects WorkerProtocol::OnHeartbeat(const absl::Status& status, bool finished,
                                    const absl::optional<std::string>& ended) {
  Effects effects;
  effects.progress = status.ok() && phase_ != Phase::kComputing;
  finished_ = finished_ || (status.ok() && finished);
  if (status.ok() && ended) ended_ = ended;
  effects.drop = finished_ || absl::IsAborted(status);
  return effects;
}

Effects WorkerProtocol::OnReplaced(absl::Status status) {
  replaced_ = std::move(status);
  Effects effects;
  effects.drop = true;
  effects.cancel = true;
  return effects;
}

Effects WorkerProtocol::OnStop() {
  Effects effects;
  effects.drop = true;
  // This is needed even if the stream is closed, since a message to the chief about leaving may still be in progress.
  (stops_ > 0 ? effects.cancel : effects.cancel_wait) = true;
  ++stops_;
  return effects;
}

}  // namespace lockstep
