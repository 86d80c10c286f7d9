#include "lockstep/server/rpc/step/step_pump.h"

#include "glog/logging.h"

namespace lockstep {

StepPump::Effects StepPump::OnStarted() {
  CHECK(reader_ == Reader::kNew) << "a stream starts once";
  Effects effects;
  if (is_open()) {
    reader_ = Reader::kFirst;
    StartTimer(&effects);
    effects.start_read = true;
  } else {
    reader_ = Reader::kStopped;
    SetOver(&effects);
  }
  return effects;
}

StepPump::Effects StepPump::OnRead(bool ok) {
  CHECK(reader_ == Reader::kFirst || reader_ == Reader::kReading) << "no read is pending";
  Effects effects;
  effects.cancel_timer = reader_ == Reader::kFirst && timer_pending_;
  wrote_ = false;
  if (ok && is_open()) {
    reader_ = Reader::kHandling;
    effects.handle_frame = true;
    return effects;
  }
  reader_ = Reader::kStopped;
  // The worker has ended the stream, or the stream broke.
  EndStream(absl::OkStatus(), &effects);
  SetOver(&effects);
  return effects;
}

StepPump::Effects StepPump::OnConnected() {
  CHECK(reader_ == Reader::kHandling && !connected_) << "a stream is connected once, by its first frame";
  connected_ = true;
  Effects effects;
  effects.close_connection = !is_open();
  return effects;
}

StepPump::Next StepPump::NextAfter(const StepFrame& frame) {
  if (frame.leave) return Next::kLeaves;
  return frame.end && frame.path != WirePath::kRing ? Next::kAwaits : Next::kSends;
}

StepPump::Effects StepPump::OnHandled(const absl::Status& status, Next next) {
  CHECK(reader_ == Reader::kHandling) << "no frame is being handled";
  Effects effects;
  if (status.ok() && next != Next::kLeaves && is_open()) {
    reader_ = Reader::kAwaiting;
    if (next == Next::kSends || writer_ != Writer::kResting || wrote_) {
      ReadIfAwaiting(&effects);
    } else {
      effects.start_pause = !pause_pending_;
      pause_pending_ = true;
    }
    return effects;
  }
  reader_ = Reader::kStopped;
  EndStream(status, &effects);
  SetOver(&effects);
  return effects;
}

StepPump::Effects StepPump::OnPauseOver() {
  CHECK(pause_pending_) << "no pause is pending";
  pause_pending_ = false;
  Effects effects;
  ReadIfAwaiting(&effects);
  SetOver(&effects);
  return effects;
}

StepPump::Effects StepPump::OnWaits() {
  CHECK(reader_ == Reader::kHandling || reader_ == Reader::kResumed) << "no frame is being handled";
  Effects effects;
  if (!is_open()) {
    reader_ = Reader::kStopped;
    SetOver(&effects);
  } else {
    effects.wake = reader_ == Reader::kResumed;
    reader_ = effects.wake ? Reader::kWaking : Reader::kWaiting;
  }
  return effects;
}

StepPump::Effects StepPump::OnResume() {
  Effects effects;
  if (reader_ == Reader::kHandling) {
    reader_ = Reader::kResumed;
  } else if (reader_ == Reader::kWaiting) {
    reader_ = Reader::kWaking;
    effects.wake = true;
  }
  return effects;
}

StepPump::Effects StepPump::OnWoken() {
  CHECK(reader_ == Reader::kWaking) << "no frame waits";
  Effects effects;
  effects.handle_frame = is_open();
  reader_ = is_open() ? Reader::kHandling : Reader::kStopped;
  SetOver(&effects);
  return effects;
}

StepPump::Effects StepPump::OnTimer(bool expired, const absl::Status& why) {
  CHECK(timer_pending_) << "no timer is pending";
  timer_pending_ = false;
  Effects effects;
  if (expired && reader_ == Reader::kFirst) EndStream(why, &effects);
  if (end_ == End::kEnding && is_writing()) {
    if (expired) {
      effects.cancel_call = true;
    } else {
      StartTimer(&effects);  // the timer of the first frame was still pending when the stream ended
    }
  }
  SetOver(&effects);
  return effects;
}

StepPump::Effects StepPump::OnReplyReady() {
  Effects effects;
  if (!connected_ || !is_open()) return effects;
  if (writer_ == Writer::kResting) {
    writer_ = Writer::kFetching;
    effects.fetch_reply = true;
  } else if (writer_ == Writer::kFetching) {
    writer_ = Writer::kRefetching;  // the pending fetch may have missed the reply
  } else if (writer_ == Writer::kWritingToken) {
    writer_ = Writer::kWriting;
  }
  return effects;
}

StepPump::Effects StepPump::OnFetched(Fetched fetched) {
  CHECK(writer_ == Writer::kFetching || writer_ == Writer::kRefetching) << "no reply is being fetched";
  Effects effects;
  if (!is_open()) {
    Rest(&effects);
  } else if (fetched != Fetched::kNothing) {
    const bool more = fetched == Fetched::kReply || writer_ == Writer::kRefetching;
    writer_ = more ? Writer::kWriting : Writer::kWritingToken;
    effects.start_write = wrote_ = true;
    ReadIfAwaiting(&effects);
  } else if (writer_ == Writer::kRefetching) {
    writer_ = Writer::kFetching;
    effects.fetch_reply = true;
  } else {
    Rest(&effects);
  }
  return effects;
}

StepPump::Effects StepPump::OnWritten(bool ok) {
  CHECK(is_writing()) << "no write is pending";
  Effects effects;
  if (ok && is_open() && writer_ == Writer::kWriting) {
    writer_ = Writer::kFetching;
    effects.fetch_reply = true;
  } else {
    Rest(&effects);
  }
  return effects;
}

StepPump::Effects StepPump::OnEnd(const absl::Status& why, bool cancel) {
  Effects effects;
  effects.cancel_call = cancel && (is_writing() || end_ == End::kFinishing);
  EndStream(why, &effects);
  return effects;
}

StepPump::Effects StepPump::OnFinished() {
  CHECK(end_ == End::kFinishing) << "the stream is not being finished";
  end_ = End::kFinished;
  Effects effects;
  SetOver(&effects);
  return effects;
}

void StepPump::EndStream(const absl::Status& why, Effects* effects) {
  if (!is_open()) return;
  end_ = End::kEnding;
  why_ = why;
  effects->close_connection = connected_;
  if (reader_ == Reader::kWaiting || reader_ == Reader::kAwaiting) reader_ = Reader::kStopped;
  if (writer_ == Writer::kResting) Rest(effects);
  if (is_writing()) StartTimer(effects);
}

void StepPump::StartTimer(Effects* effects) {
  if (timer_pending_) return;
  timer_pending_ = true;
  effects->start_timer = true;
}

void StepPump::ReadIfAwaiting(Effects* effects) {
  if (reader_ != Reader::kAwaiting) return;
  reader_ = Reader::kReading;
  effects->start_read = true;
}

void StepPump::Rest(Effects* effects) {
  writer_ = Writer::kResting;
  if (end_ != End::kEnding) return;
  end_ = End::kFinishing;
  effects->finish = why_;
  effects->cancel_timer |= timer_pending_;
}

void StepPump::SetOver(Effects* effects) const {
  effects->over = end_ == End::kFinished && reader_ == Reader::kStopped && !timer_pending_ && !pause_pending_;
}

}  // namespace lockstep
