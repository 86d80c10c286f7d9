#include "lockstep/server/rpc/ring_step_wire.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/transport/ring_messages.h"

namespace lockstep {

RingStepWire::RingStepWire(Options options) : options_(std::move(options)), ring_(*options_.ring) {}

void RingStepWire::Read(grpc::ByteBuffer* message) {
  std::shared_ptr<const void> owner;
  bool fails = false;
  {
    MutexLock lock(&mutex_);
    fails = stopped_ && !serving_;
    if (!fails) wanted_ = message;
    if (!stopped_ && !serving_) {
      serving_ = true;
      owner = std::move(options_.owner);
    }
  }
  if (fails) options_.read->OnEvent(false);
  if (owner == nullptr) return;
  // Nobody waits for the thread itself: with the owner it lets go of everything.
  options_.executor->Start("ring", [this, owner = std::move(owner)] { Serve(); })->Detach();
}

void RingStepWire::Write(const grpc::ByteBuffer& message) {
  absl::StatusOr<bool> sent = absl::CancelledError("the ring is closed");
  bool over;
  {
    MutexLock lock(&mutex_);
    if (!stopped_ && !broken_) {
      PutMessage(message, &ring_);
      sent = ring_.Flush();
      sending_ = sent.ok() && !*sent;
    }
    over = !sending_;
  }
  if (!sent.ok()) Break(sent.status());
  if (over) options_.written->OnEvent(sent.ok());
}

void RingStepWire::Stop() {
  std::shared_ptr<const void> owner;
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    owner = std::move(options_.owner);
  }
  ring_.Wake();
}

void RingStepWire::Serve() {
  while (!stopped()) {
    const uint32_t ticket = ring_.Ticket();
    const bool taken = TakeOne(), sent = SendOn();
    if (!taken && !sent && !stopped()) ring_.Wait(ticket, absl::InfiniteDuration());
  }
  FailPending();
}

bool RingStepWire::stopped() {
  MutexLock lock(&mutex_);
  return stopped_;
}

bool RingStepWire::TakeOne() {
  grpc::ByteBuffer* wanted;
  {
    MutexLock lock(&mutex_);
    wanted = broken_ ? nullptr : wanted_;
  }
  if (wanted == nullptr) return false;
  const absl::StatusOr<bool> taken = TakeMessage(&ring_, wanted);
  if (!taken.ok()) Break(taken.status());
  if (!taken.ok() || !*taken) return false;
  {
    MutexLock lock(&mutex_);
    wanted_ = nullptr;
  }
  options_.read->OnEvent(true);
  return true;
}

bool RingStepWire::SendOn() {
  absl::StatusOr<bool> sent;
  {
    MutexLock lock(&mutex_);
    if (!sending_) return false;
    sent = ring_.Flush();
    sending_ = sent.ok() && !*sent;
    if (sending_) return false;
  }
  if (!sent.ok()) Break(sent.status());
  options_.written->OnEvent(sent.ok());
  return true;
}

void RingStepWire::FailPending() {
  bool reading, writing;
  {
    MutexLock lock(&mutex_);
    reading = std::exchange(wanted_, nullptr) != nullptr;
    writing = std::exchange(sending_, false);
  }
  if (writing) options_.written->OnEvent(false);
  if (reading) options_.read->OnEvent(false);
}

void RingStepWire::Break(const absl::Status& why) {
  {
    MutexLock lock(&mutex_);
    if (broken_ || stopped_) return;
    broken_ = true;
  }
  options_.on_broken(why);
}

}  // namespace lockstep
