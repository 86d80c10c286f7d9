#include "lockstep/server/rpc/step_call.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/transport/status_conversion.h"
#include "lockstep/common/transport/step_codec.h"

namespace lockstep {
namespace {

// Messages that stand for this many bytes are worked on while another thread waits for the next: below it, passing the
// waiting on (about 5 us) costs more than it brings.
constexpr size_t kLongMessageBytes = 32 << 10;

}  // namespace

void StepCall::Start(const Options& options, std::unique_ptr<IncomingCall> incoming) {
  std::shared_ptr<StepCall> call(new StepCall(options, std::move(incoming)));
  {
    MutexLock lock(&call->mutex_);
    call->self_ = call;
  }
  // First: it leaves when it has read a session.
  options.visitors->Enter(call);
  call->Pump([](StepPump* pump) { return pump->OnStarted(); });
}

StepCall::StepCall(const Options& options, std::unique_ptr<IncomingCall> call)
    : options_(options),
      rpc_(std::move(call)),
      tags_{Tag(this, kTimer), Tag(this, kRead), Tag(this, kWrite), Tag(this, kFinish)},
      receiver_(options.chief) {}

void StepCall::OnOperationEnded(Operation operation, bool ok) {
  switch (operation) {
    case kTimer: {
      const absl::Status why = absl::DeadlineExceededError(
          absl::StrCat("the stream's first frame did not come for ", absl::FormatDuration(options_.silence_limit)));
      return Pump([ok, &why](StepPump* pump) { return pump->OnTimer(/*expired=*/ok, why); });
    }
    case kRead:
      return Pump([ok](StepPump* pump) { return pump->OnRead(ok); });
    case kWrite:
      sent_.Clear();  // it holds values of a step that may soon be over
      return Pump([ok](StepPump* pump) { return pump->OnWritten(ok); });
    case kFinish:
      options_.visitors->Leave(this);
      return Pump([](StepPump* pump) { return pump->OnFinished(); });
    case kNumOperations:
      return;
  }
}

bool StepCall::IsLong(Operation operation) const {
  switch (operation) {
    case kRead:
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
    if (effects.fetch_reply || effects.close_connection) connection = connection_;
    self = effects.over ? std::move(self_) : self_;
  }
  CarryOut(effects, connection.get());
}

void StepCall::CarryOut(const StepPump::Effects& effects, StepConnection* connection) {
  if (effects.start_timer) {
    timer_.Set(options_.queue, std::chrono::system_clock::now() + absl::ToChronoMicroseconds(options_.silence_limit),
               &tags_[kTimer]);
  }
  if (effects.cancel_timer) timer_.Cancel();
  if (effects.start_read) rpc_->stream.Read(&received_, &tags_[kRead]);
  if (effects.handle_frame) HandleFrame();
  if (effects.fetch_reply) FetchReply(connection);
  if (effects.start_write) rpc_->stream.Write(sent_, &tags_[kWrite]);
  if (effects.close_connection) connection->Close();
  if (effects.finish) rpc_->stream.Finish(ToGrpc(*effects.finish), &tags_[kFinish]);
  // A write that the worker does not take ends only so; the worker then learns no more than that.
  if (effects.cancel_call) rpc_->context.TryCancel();
}

void StepCall::HandleFrame() {
  bool leave = false;
  const absl::Status status = TakeFrame(&leave);
  received_.Clear();
  Pump([&status, leave](StepPump* pump) { return pump->OnHandled(status, leave); });
}

absl::Status StepCall::TakeFrame(bool* leave) {
  Decoded<StepFrame> decoded;
  RETURN_IF_ERROR(receiver_.Decode(received_, &decoded));
  *leave = decoded.frame.leave;
  if (!receiver_.connected()) {
    ASSIGN_OR_RETURN(auto connection, receiver_.Connect(decoded.frame, shared_from_this()));
    options_.visitors->Leave(this);
    {
      MutexLock lock(&mutex_);
      connection_ = std::move(connection);
    }
    Pump([](StepPump* pump) { return pump->OnConnected(); });
  }
  return receiver_.Deliver(&decoded.frame);
}

void StepCall::FetchReply(StepConnection* connection) {
  StepPump::Fetched fetched = StepPump::Fetched::kNothing;
  {
    StepReplyFrame reply;
    if (connection->NextReply(&reply)) {
      fetched = reply.token ? StepPump::Fetched::kToken : StepPump::Fetched::kReply;
      sent_ = EncodeStepReply(reply);
    }
  }
  if (fetched != StepPump::Fetched::kNothing) connection->CountSent(static_cast<int64_t>(sent_.Length()));
  Pump([fetched](StepPump* pump) { return pump->OnFetched(fetched); });
}

void StepCall::OnReplyReady() {
  Pump([](StepPump* pump) { return pump->OnReplyReady(); });
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
