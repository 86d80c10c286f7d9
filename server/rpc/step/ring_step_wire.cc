#include "lockstep/server/rpc/step/ring_step_wire.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/transport/codec/ring_messages.h"

namespace lockstep {

RingStepWire::RingStepWire(Options options) : options_(std::move(options)), ring_(*options_.ring) {}

absl::StatusOr<std::unique_ptr<RingStepWire>> RingStepWire::Start(Options options) {
  auto owner = std::move(options.owner);
  std::unique_ptr<RingStepWire> wire(new RingStepWire(std::move(options)));
  // The thread is not joined. Until it ends, it keeps the owner alive, and with it everything that the thread uses.
  const auto thread =
      wire->options_.executor->TryStart("ring", [wire = wire.get(), owner = std::move(owner)] { wire->Serve(); });
  if (thread == nullptr) return absl::ResourceExhaustedError("there is no thread for it");
  thread->Detach();
  return wire;
}

void RingStepWire::Read(grpc::ByteBuffer* message) {
  bool fails, wakes;
  {
    MutexLock lock(&mutex_);
    fails = ended_;
    if (!fails) wanted_ = message;
    wakes = !looks_;
  }
  // Most reads are started by the ring's own thread, which does not need to be woken.
  if (wakes && !fails) ring_.Wake();
  if (fails) options_.read->OnEvent(false);
}

void RingStepWire::Write(const grpc::ByteBuffer& message) {
  absl::StatusOr<bool> sent = false;
  bool over;
  {
    MutexLock lock(&mutex_);
    if (stopped_ || broken_) {
      sent = absl::CancelledError("the ring is closed");
    } else {
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
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
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
    looks_ = false;
    wanted = broken_ ? nullptr : wanted_;
  }
  if (wanted == nullptr) return false;
  const absl::StatusOr<bool> taken = TakeMessage(&ring_, wanted);
  if (!taken.ok()) Break(taken.status());
  if (!taken.ok() || !*taken) return false;
  {
    MutexLock lock(&mutex_);
    wanted_ = nullptr;
    looks_ = true;
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
    ended_ = true;
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
