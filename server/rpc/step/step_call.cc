#include "lockstep/server/rpc/step/step_call.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/memory/ring_endpoint.h"

namespace lockstep {
namespace {

// While a message of at least this size is processed, another thread waits for the next message. For smaller messages,
// handing over the wait (about 5 us) costs more than it saves.
constexpr size_t kLongMessageBytes = 32 << 10;

}  // namespace

StepRoute::StepRoute(Options options)
    : options_(std::move(options)),
      stream_path_(IsUnixAddress(options_.call->context.peer()) ? WirePath::kUnixSocket : WirePath::kTcp),
      stream_(options_.call.get(), options_.read, options_.written) {}

void StepRoute::OnOffer(const v1::SharedMemoryHandle& ring, std::shared_ptr<const void> owner) {
  answer_.emplace();
  const absl::Status status = Connect(ring, std::move(owner));
  if (!status.ok()) LOG(INFO) << "a worker's frames go over gRPC, its ring is not used: " << status.message();
}

absl::Status StepRoute::Connect(const v1::SharedMemoryHandle& peer, std::shared_ptr<const void> owner) {
  ASSIGN_OR_RETURN(auto ring, RingEndpoint::Create(options_.max_message_bytes));
  RETURN_IF_ERROR(ring->Attach(peer));
  const v1::SharedMemoryHandle handle = ring->handle();
  RingStepWire::Options wire;
  wire.ring = std::move(ring);
  wire.read = options_.read;
  wire.written = options_.written;
  wire.on_broken = options_.on_broken;
  wire.executor = options_.executor;
  wire.owner = std::move(owner);
  ASSIGN_OR_RETURN(ring_, RingStepWire::Start(std::move(wire)));
  answer_ = handle;
  reader_ = ring_.get();
  options_.call->stream.Read(&beside_, options_.stream_read);
  return absl::OkStatus();
}

absl::optional<v1::SharedMemoryHandle> StepRoute::TakeAnswer() { return std::exchange(answer_, absl::nullopt); }

void StepCall::Start(const Options& options, std::unique_ptr<IncomingCall> incoming) {
  std::shared_ptr<StepCall> call(new StepCall(options, std::move(incoming)));
  {
    MutexLock lock(&call->mutex_);
    call->self_ = call;
  }
  // Register the call before its first read, because it is removed once its first frame has named a session.
  options.unauthenticated_calls->Enter(call);
  if (options.watch) options.watch(call->route_.call()->peer, call);
  call->Pump([](StepPump* pump) { return pump->OnStarted(); });
}

StepCall::StepCall(const Options& options, std::unique_ptr<IncomingCall> call)
    : options_(options),
      tags_{Tag(this, kTimer),  Tag(this, kPause),      Tag(this, kRead), Tag(this, kWrite),
            Tag(this, kFinish), Tag(this, kStreamRead), Tag(this, kWake)},
      route_(RouteOptions(std::move(call))),
      receiver_(options.chief, route_.call()->peer.name, AddressOfPeer(route_.call()->context.peer())) {}

StepRoute::Options StepCall::RouteOptions(std::unique_ptr<IncomingCall> call) {
  StepRoute::Options route;
  route.call = std::move(call);
  route.read = &tags_[kRead];
  route.written = &tags_[kWrite];
  route.stream_read = &tags_[kStreamRead];
  route.on_broken = [this](const absl::Status& why) {
    Pump([&why](StepPump* pump) { return pump->OnEnd(why, /*cancel=*/false); });
  };
  route.executor = options_.executor;
  route.max_message_bytes = options_.max_message_bytes;
  return route;
}

void StepCall::OnOperationEnded(Operation operation, bool ok) {
  switch (operation) {
    case kTimer: {
      const absl::Status why = absl::DeadlineExceededError(
          absl::StrCat("the stream's first frame did not come for ", absl::FormatDuration(options_.silence_limit)));
      return Pump([ok, &why](StepPump* pump) { return pump->OnTimer(/*expired=*/ok, why); });
    }
    case kPause:
      return Pump([](StepPump* pump) { return pump->OnPauseOver(); });
    case kRead:
      return Pump([ok](StepPump* pump) { return pump->OnRead(ok); });
    case kWrite:
      sent_.Clear();  // it refers to the values of a step that may soon be over
      route_.OnWritten();
      return Pump([ok](StepPump* pump) { return pump->OnWritten(ok); });
    case kFinish:
      route_.call()->OnEnded(ok);
      options_.unauthenticated_calls->Leave(this);
      return Pump([](StepPump* pump) { return pump->OnFinished(); });
    case kStreamRead:
      return OnStreamRead(ok);
    case kWake:
      return Pump([](StepPump* pump) { return pump->OnWoken(); });
    case kNumOperations:
      return;
  }
}

void StepCall::OnStreamRead(bool ok) {
  const std::shared_ptr<StepCall> self = shared_from_this();  // the ring's thread releases it
  if (ok) {
    const absl::Status why = absl::InvalidArgumentError("a message over gRPC on a stream that has a ring");
    Pump([&why](StepPump* pump) { return pump->OnEnd(why, /*cancel=*/false); });
  }
  route_.OnStreamRead();
}

bool StepCall::IsLong(Operation operation) const {
  switch (operation) {
    case kRead:
    case kWake:
      return received_.Valid() && receiver_.WorkBytes(received_) >= kLongMessageBytes;
    case kWrite:
      return sent_.Valid() && sent_.Length() >= kLongMessageBytes;
    default:
      return false;
  }
}

void StepCall::Pump(absl::FunctionRef<StepPump::Effects(StepPump*)> event) {
  std::shared_ptr<StepCall> self;  // an operation that CarryOut starts may end the call meanwhile
  std::shared_ptr<StepConnection> connection;
  StepPump::Effects effects;
  {
    MutexLock lock(&mutex_);
    effects = event(&pump_);
    // Set the timer while holding the lock. Otherwise, another thread could cancel it before it is set.
    if (effects.start_timer) {
      timer_.Set(options_.queue, std::chrono::system_clock::now() + absl::ToChronoMicroseconds(options_.silence_limit),
                 &tags_[kTimer]);
    }
    if (effects.cancel_timer) timer_.Cancel();
    if (effects.fetch_reply || effects.close_connection) connection = connection_;
    self = effects.over ? std::move(self_) : self_;
  }
  CarryOut(effects, connection.get());
}

void StepCall::CarryOut(const StepPump::Effects& effects, StepConnection* connection) {
  if (effects.start_pause) {
    pause_.Set(options_.queue, std::chrono::system_clock::now() + absl::ToChronoMicroseconds(StepPump::kPause),
               &tags_[kPause]);
  }
  if (effects.handle_frame) HandleFrame();
  if (effects.wake) wake_.Set(options_.queue, std::chrono::system_clock::now(), &tags_[kWake]);
  if (effects.fetch_reply) FetchReply(connection);
  if (effects.start_write) route_.Write(sent_);
  if (effects.start_read) route_.Read(&received_);
  if (effects.close_connection) connection->Close();
  if (effects.finish) {
    sent_.Clear();  // a reply that was fetched after the stream had ended
    route_.call()->stream.Finish(route_.call()->EndWith(*effects.finish), &tags_[kFinish]);
  }
  // This is the only way to end a write that the worker does not read. Nothing more reaches the worker after that.
  if (effects.cancel_call) route_.call()->context.TryCancel();
}

void StepCall::HandleFrame() {
  StepPump::Next next = StepPump::Next::kSends;
  bool waits = false;
  const absl::Status status = TakeFrame(&next, &waits);
  decoded_.Clear();
  if (waits) return Pump([](StepPump* pump) { return pump->OnWaits(); });
  received_.Clear();
  Pump([&status, next](StepPump* pump) { return pump->OnHandled(status, next); });
}

absl::Status StepCall::TakeFrame(StepPump::Next* next, bool* waits) {
  RETURN_IF_ERROR(receiver_.Decode(received_, &decoded_));
  StepFrame& frame = decoded_.frame;
  frame.path = route_.path();
  *next = StepPump::NextAfter(frame);
  if (!receiver_.connected()) {
    ASSIGN_OR_RETURN(auto connection, receiver_.Connect(frame, shared_from_this()));
    options_.unauthenticated_calls->Leave(this);
    {
      MutexLock lock(&mutex_);
      connection_ = std::move(connection);
    }
    if (frame.ring) {
      // A ring is used only if the gradients are in shared memory.
      route_.OnOffer(receiver_.shares_memory() ? *frame.ring : v1::SharedMemoryHandle(), shared_from_this());
    }
    Pump([](StepPump* pump) { return pump->OnConnected(); });
    if (frame.ring) OnReplyReady();  // the answer
  }
  return receiver_.Deliver(&frame, waits);
}

void StepCall::FetchReply(StepConnection* connection) {
  StepPump::Fetched fetched = StepPump::Fetched::kNothing;
  WirePath path = route_.path();
  {
    StepReplyFrame reply;
    reply.ring = route_.TakeAnswer();
    if (reply.ring) path = route_.stream_path();
    if (reply.ring || connection->NextReply(&reply)) {
      fetched = reply.token ? StepPump::Fetched::kToken : StepPump::Fetched::kReply;
      grpc::ByteBuffer message = EncodeStepReply(reply);
      sent_.Swap(&message);  // an assignment would copy it
    }
  }
  if (fetched != StepPump::Fetched::kNothing) connection->CountSent(static_cast<int64_t>(sent_.Length()), path);
  Pump([fetched](StepPump* pump) { return pump->OnFetched(fetched); });
}

void StepCall::OnReplyReady() {
  Pump([](StepPump* pump) { return pump->OnReplyReady(); });
}

void StepCall::OnResume() {
  Pump([](StepPump* pump) { return pump->OnResume(); });
}

void StepCall::OnClosed(const absl::Status& why, bool at_once) {
  Pump([&why, at_once](StepPump* pump) { return pump->OnEnd(why, /*cancel=*/at_once); });
}

void StepCall::OnEvicted() {
  const absl::Status why =
      absl::UnavailableError("too many calls at once that name no session; this one had waited longest");
  Pump([&why](StepPump* pump) { return pump->OnEnd(why, /*cancel=*/false); });
}

}  // namespace lockstep
