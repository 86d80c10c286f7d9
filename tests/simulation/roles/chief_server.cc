#include "lockstep/tests/simulation/roles/chief_server.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/transport/codec/bounded_parse.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/server/rpc/step/step_frame_receiver.h"
#include "lockstep/server/rpc/step/step_pump.h"
#include "lockstep/tests/simulation/roles/step_stream.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {
namespace {

constexpr int kStepThreads = 2;
// These limits are small, so that strangers can push others out within the time of one simulated life.
constexpr size_t kMaxUnauthenticatedCalls = 8;
constexpr absl::Duration kSilenceLimit = absl::Seconds(1);
// The number of replies that a client may leave unread before further replies to it have to wait.
constexpr int64_t kWindow = 2;
constexpr size_t kMaxUnaryBytes = 4096;
constexpr size_t kMaxSessionBytes = 1 << 20;

UnauthenticatedCalls::Options UnauthenticatedCallsOptions(Process* process, bool many_workers) {
  UnauthenticatedCalls::Options options;
  options.clock = process->clock();
  if (many_workers) return options;
  options.most = kMaxUnauthenticatedCalls;
  options.patience = absl::ZeroDuration();
  return options;
}

SessionOpener::Options OpenerOptions(Process* process) {
  SessionOpener::Options options;
  options.max_request_bytes = kMaxSessionBytes;
  options.threads = 2;
  options.executor = process->executor();
  return options;
}

template <typename Request>
absl::StatusOr<std::string> Reply(const std::string& bytes,
                                  absl::FunctionRef<absl::StatusOr<std::string>(const Request&)> handle) {
  Request request;
  const absl::Status parsed = ParseBounded(bytes, kMaxUnaryBytes * 16, &request);
  if (!parsed.ok()) return absl::InternalError(parsed.message());
  return handle(request);
}

}  // namespace

int64_t LastStepOf(const Chief& chief) {
  const v1::RunStatus status = chief.GetStatus();
  return status.phase() < v1::RunStatus::TRAINING ? -1 : status.global_step();
}

// A Step stream. Carries out the effects of its StepPump, like StepCall.
class SimulatedChiefServer::StepStreamCall : public ServerCall,
                                             public StepListener,
                                             public EvictableCall,
                                             public std::enable_shared_from_this<StepStreamCall> {
 public:
  StepStreamCall(SimulatedChiefServer* server, std::shared_ptr<Call> call)
      : server_(server), call_(std::move(call)), receiver_(server->chief_) {}

  void Start() {
    server_->unauthenticated_calls_.Enter(shared_from_this());
    Pump([](StepPump* pump) { return pump->OnStarted(); });
  }

  // ServerCall: called by the network.
  void OnRequest() override { TryRead(); }
  void OnRead() override { TryWrite(); }
  void OnBroken() override {
    TryRead();
    TryWrite();
  }
  // StepListener: called by the chief.
  void OnReplyReady() override {
    Pump([](StepPump* pump) { return pump->OnReplyReady(); });
  }
  void OnResume() override {
    Pump([](StepPump* pump) { return pump->OnResume(); });
  }
  void OnClosed(const absl::Status& why, bool at_once) override {
    Pump([&](StepPump* pump) { return pump->OnEnd(why, at_once); });
  }
  void OnEvicted() override {
    const absl::Status why = absl::UnavailableError("too many calls at once that name no session");
    Pump([&](StepPump* pump) { return pump->OnEnd(why, /*cancel=*/false); });
  }

 private:
  using Effects = StepPump::Effects;

  void Pump(absl::FunctionRef<Effects(StepPump*)> event) {
    const auto self = shared_from_this();
    const auto connection = connection_;
    CarryOut(event(&pump_), connection.get());
  }

  void Enqueue(std::function<Effects(StepPump*)> event) {
    server_->Enqueue([self = shared_from_this(), event = std::move(event)] { self->Pump(event); });
  }

  void CarryOut(const Effects& effects, StepConnection* connection) {
    if (effects.start_timer) StartTimer();
    if (effects.cancel_timer) EndTimer(/*expired=*/false);
    if (effects.start_pause) StartPause();
    if (effects.handle_frame) HandleFrame();
    if (effects.wake) Enqueue([](StepPump* pump) { return pump->OnWoken(); });
    if (effects.fetch_reply) FetchReply(connection);
    if (effects.start_write) {
      server_->process_->world()->OnPoint(Point::kReply);
      writing_ = true;
      leaves_ = false;
      // The message stays in place until the network takes it.
      World* const world = server_->process_->world();
      const absl::Duration delay = world->random()->Between(absl::Nanoseconds(1), absl::Microseconds(200));
      world->scheduler()->At(world->now() + absl::ToInt64Nanoseconds(delay),
                             [weak = weak_from_this(), process = server_->process_] {
                               const auto self = process->alive() ? weak.lock() : nullptr;
                               if (self == nullptr) return;
                               self->leaves_ = true;
                               self->TryWrite();
                             });
    }
    if (effects.start_read) {
      reading_ = true;
      TryRead();
    }
    if (effects.close_connection) connection->Close();
    if (effects.finish) {
      call_->Finish(*effects.finish);
      // Makes a pending read fail.
      call_->broken = true;
      TryRead();
      Enqueue([](StepPump* pump) { return pump->OnFinished(); });
      server_->unauthenticated_calls_.Leave(this);
    }
    if (effects.cancel_call) {
      call_->Finish(absl::CancelledError("CANCELLED"));
      call_->broken = true;
      OnBroken();
    }
    if (effects.over) {
      call_->server = nullptr;
      server_->End(this);
    }
  }

  void StartTimer() {
    timer_ = true;
    World* const world = server_->process_->world();
    world->scheduler()->At(world->now() + absl::ToInt64Nanoseconds(kSilenceLimit),
                           [weak = weak_from_this(), number = ++timers_, process = server_->process_] {
                             const auto self = process->alive() ? weak.lock() : nullptr;
                             if (self != nullptr && number == self->timers_) self->EndTimer(/*expired=*/true);
                           });
  }
  void StartPause() {
    World* const world = server_->process_->world();
    world->scheduler()->At(world->now() + absl::ToInt64Nanoseconds(StepPump::kPause),
                           [weak = weak_from_this(), process = server_->process_] {
                             const auto self = process->alive() ? weak.lock() : nullptr;
                             if (self != nullptr) self->Enqueue([](StepPump* pump) { return pump->OnPauseOver(); });
                           });
  }
  void EndTimer(bool expired) {
    if (!std::exchange(timer_, false)) return;
    Enqueue([expired](StepPump* pump) {
      return pump->OnTimer(expired, absl::DeadlineExceededError("the stream's first frame did not come"));
    });
  }

  // Completes the pending read or write, if possible.
  void TryRead() {
    if (!reading_ || (call_->requests.empty() && !call_->broken)) return;
    reading_ = false;
    const bool ok = !call_->requests.empty();
    if (ok) {
      received_ = std::move(call_->requests.front());
      call_->requests.pop_front();
    }
    Enqueue([ok](StepPump* pump) { return pump->OnRead(ok); });
  }
  void TryWrite() {
    if (!writing_) return;
    const bool ok = !call_->broken;
    if (ok && (!leaves_ || !call_->takes_replies || call_->unread_replies > kWindow)) return;
    if (ok) call_->SendReply(BytesOf(sent_));
    sent_.Clear();
    writing_ = false;
    Enqueue([ok](StepPump* pump) { return pump->OnWritten(ok); });
  }

  void HandleFrame() {
    StepPump::Next next = StepPump::Next::kSends;
    bool waits = false;
    const absl::Status status = TakeFrame(&next, &waits);
    if (waits) return Pump([](StepPump* pump) { return pump->OnWaits(); });
    received_.clear();
    Pump([&](StepPump* pump) { return pump->OnHandled(status, next); });
  }
  absl::Status TakeFrame(StepPump::Next* next, bool* waits) {
    World* const world = server_->process_->world();
    const Instant at = world->now();
    const grpc::ByteBuffer message = MessageOf(received_, world->random());
    Decoded<StepFrame> decoded;
    RETURN_IF_ERROR(receiver_.Decode(message, &decoded));
    const bool contributes = decoded.frame.block.count > 0;
    *next = StepPump::NextAfter(decoded.frame);
    if (!receiver_.connected()) {
      ASSIGN_OR_RETURN(auto connection, receiver_.Connect(decoded.frame, shared_from_this()));
      call_->place = ++server_->streams_;
      server_->unauthenticated_calls_.Leave(this);
      connection_ = std::move(connection);
      Pump([](StepPump* pump) { return pump->OnConnected(); });
    }
    const bool waited = std::exchange(waited_, false);
    if (!waited && !server_->process_->ghost() && server_->observer_->on_frame) {
      server_->observer_->on_frame(call_, decoded.frame);
    }
    RETURN_IF_ERROR(receiver_.Deliver(&decoded.frame, waits));
    waited_ = *waits;
    if (waited_ && !waited && !server_->process_->ghost()) {
      world->transcript()->Add(world->now(), server_->process_->name(),
                               DescribeBlock(decoded.frame.step, decoded.frame.block), " wait");
    }
    if (contributes && !waited && !server_->process_->ghost() && server_->observer_->on_contribution) {
      server_->observer_->on_contribution(server_->process_, call_->connection()->ends[Connection::kClient], at);
    }
    return absl::OkStatus();
  }
  void FetchReply(StepConnection* connection) {
    StepReplyFrame reply;
    StepPump::Fetched fetched = StepPump::Fetched::kNothing;
    if (connection->NextReply(&reply)) {
      fetched = reply.token ? StepPump::Fetched::kToken : StepPump::Fetched::kReply;
      // Called immediately, before another thread can get a later reply.
      Process* const process = server_->process_;
      if (!process->ghost()) server_->observer_->on_reply(process, call_, reply);
      sent_ = EncodeStepReply(reply);
      connection->CountSent(static_cast<int64_t>(sent_.Length()));
    }
    Pump([fetched](StepPump* pump) { return pump->OnFetched(fetched); });
  }

  SimulatedChiefServer* const server_;
  const std::shared_ptr<Call> call_;
  StepFrameReceiver receiver_;
  StepPump pump_;
  std::shared_ptr<StepConnection> connection_;
  bool timer_ = false;
  int timers_ = 0;  // number of timers started
  bool reading_ = false;
  bool waited_ = false;  // the newest frame had to wait
  bool writing_ = false;
  bool leaves_ = false;  // the network takes the written message
  std::string received_;
  grpc::ByteBuffer sent_;
};

// A call with one request and one reply.
class SimulatedChiefServer::PlainCall : public ServerCall {
 public:
  PlainCall(SimulatedChiefServer* server, std::shared_ptr<Call> call) : server_(server), call_(std::move(call)) {}

  void OnRequest() override {
    server_->Enqueue([server = server_, call = call_] { server->Answer(call); });
  }
  void OnRead() override {}
  void OnBroken() override {
    call_->server = nullptr;
    server_->End(this);
  }

 private:
  SimulatedChiefServer* const server_;
  const std::shared_ptr<Call> call_;
};

SimulatedChiefServer::SimulatedChiefServer(Process* process, Chief* chief, std::string address,
                                           const ReplyObserver* observer, bool many_workers)
    : process_(process),
      chief_(chief),
      address_(std::move(address)),
      observer_(observer),
      unauthenticated_calls_(UnauthenticatedCallsOptions(process, many_workers)),
      opener_(OpenerOptions(process), [chief](const v1::OpenSessionRequest& request, const std::string& peer) {
        return chief->sessions()->OpenSession(request, peer);
      }) {
  for (int i = 0; i < kStepThreads; ++i) {
    threads_.push_back(process->executor()->Start(absl::StrCat("step-", i), [this] { Work(); }));
  }
  listens_ = process->ghost() || process->world()->network()->Listen(address_, process, this);
}

SimulatedChiefServer::~SimulatedChiefServer() {
  process_->world()->network()->StopListening(address_, process_);
  // Cancels all calls, and answers the opener's calls.
  for (const auto& call : std::vector<std::shared_ptr<ServerCall>>(calls_)) {
    if (auto* const stream = dynamic_cast<StepStreamCall*>(call.get())) {
      stream->OnClosed(absl::CancelledError("the server has shut down"), /*at_once=*/true);
    } else {
      call->OnBroken();
    }
  }
  while (!calls_.empty()) process_->world()->scheduler()->WaitFor(this, kNever);
  ending_ = true;
  process_->world()->scheduler()->Wake(&events_);
  for (const auto& thread : threads_) thread->Join();
}

void SimulatedChiefServer::Enqueue(std::function<void()> event) {
  events_.push_back(std::move(event));
  process_->world()->scheduler()->Wake(&events_);
}

void SimulatedChiefServer::Work() {
  while (true) {
    while (events_.empty() && !ending_) process_->world()->scheduler()->WaitFor(&events_, kNever);
    if (events_.empty()) return;
    const std::function<void()> event = std::move(events_.front());
    events_.pop_front();
    event();
  }
}

void SimulatedChiefServer::End(ServerCall* call) {
  calls_.erase(std::remove_if(calls_.begin(), calls_.end(), [call](const auto& each) { return each.get() == call; }),
               calls_.end());
  process_->world()->scheduler()->Wake(this);
}

void SimulatedChiefServer::OnCall(std::shared_ptr<Call> call) {
  if (call->method() != "Step") {
    call->server = std::make_shared<PlainCall>(this, call);
    calls_.push_back(call->server);
    return;
  }
  auto stream = std::make_shared<StepStreamCall>(this, call);
  call->server = stream;
  calls_.push_back(stream);
  Enqueue([stream] { stream->Start(); });
}

void SimulatedChiefServer::Answer(const std::shared_ptr<Call>& call) {
  if (call->broken || call->server == nullptr) return;
  const std::string request = std::exchange(call->requests.front(), "");
  call->requests.pop_front();
  const auto done = [this, call](const absl::StatusOr<std::string>& reply) {
    const std::shared_ptr<ServerCall> self = std::exchange(call->server, nullptr);
    if (self == nullptr) return;
    if (reply.ok()) call->SendReply(*reply);
    call->Finish(reply.status());
    End(self.get());
  };
  if (call->method() == "OpenSession") {
    if (observer_->on_open_session) observer_->on_open_session(request);
    return opener_.Answer(request, /*peer=*/"", done);
  }
  if (call->method() == "GetRunSpec") {
    return done(Reply<v1::GetRunSpecRequest>(request, [this](const auto&) -> absl::StatusOr<std::string> {
      return chief_->sessions()->GetRunSpec().SerializeAsString();
    }));
  }
  if (call->method() == "SetInitialValues") {
    return done(Reply<v1::SetInitialValuesRequest>(request, [this](const auto& values) -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const v1::SetInitialValuesReply reply, chief_->sessions()->SetInitialValues(values));
      return reply.SerializeAsString();
    }));
  }
  if (call->method() == "GetCanaryValues") {
    return done(Reply<v1::GetCanaryValuesRequest>(request, [this](const auto& values) -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const v1::GetCanaryValuesReply reply, chief_->sessions()->GetCanaryValues(values));
      return reply.SerializeAsString();
    }));
  }
  if (call->method() == "Heartbeat") {
    return done(Reply<v1::HeartbeatRequest>(request, [this](const auto& heartbeat) -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const v1::HeartbeatReply reply, chief_->sessions()->Heartbeat(heartbeat));
      return reply.SerializeAsString();
    }));
  }
  if (call->method() == "GetStatus") {
    return done(Reply<v1::GetStatusRequest>(request, [this](const auto&) -> absl::StatusOr<std::string> {
      return chief_->GetStatus().SerializeAsString();
    }));
  }
  if (call->method() == "RequestEnd") {
    return done(Reply<v1::RequestEndRequest>(request, [this](const auto& end) -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const v1::RequestEndReply reply, chief_->sessions()->RequestFinish(end));
      return reply.SerializeAsString();
    }));
  }
  if (call->method() == "AddSummary") {
    return done(Reply<v1::AddSummaryRequest>(request, [this](const auto& summary) -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const v1::AddSummaryReply reply, chief_->sessions()->AddSummary(summary));
      return reply.SerializeAsString();
    }));
  }
  if (call->method() == "ReadVariables") {
    return done(Reply<v1::ReadVariablesRequest>(request, [this](const auto& read) -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const v1::ReadVariablesReply reply, chief_->ReadVariables(read));
      return reply.SerializeAsString();
    }));
  }
  done(absl::UnimplementedError("no such method"));
}

}  // namespace simulation
}  // namespace lockstep
