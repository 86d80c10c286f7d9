#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/transport/codec/step_codec.h"
#include "lockstep/tests/simulation/roles/reference.h"
#include "lockstep/tests/simulation/roles/roles.h"
#include "lockstep/tests/simulation/roles/step_stream.h"
#include "lockstep/tests/simulation/world/world.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {
namespace simulation {
namespace {

// Draws a frame that names an unknown session, breaks a rule, or is not a frame at all.
std::string DrawFrame(const StrangerRole& role, Random* random) {
  v1::StepRequest frame;
  frame.set_session_id(random->Next());
  frame.set_generation(random->Chance(0.7) ? role.generation() : random->Between(-1, 100));
  frame.set_step(random->Between(-2, 20));
  frame.set_first_slot(random->Between(-1, 5));
  frame.set_slot_count(random->Between(-1, 5));
  const int reports = random->Chance(0.2) ? 3000 : static_cast<int>(random->Below(3));
  for (int i = 0; i < reports; ++i) frame.add_report()->set_slot(i);
  frame.set_end(random->Chance(0.5));
  frame.set_leave(random->Chance(0.2));
  std::string bytes = frame.SerializeAsString();
  if (random->Chance(0.3)) {
    for (int i = 0; i < 4 && !bytes.empty(); ++i) bytes[random->Below(bytes.size())] ^= 1 << random->Below(8);
  }
  return bytes;
}

absl::Status Bother(Process* process, const StrangerRole& role) {
  World* const world = process->world();
  const bool never = false;
  ASSIGN_OR_RETURN(const auto connection,
                   world->network()->Connect(process, role.target, /*patient=*/false, /*deadline=*/0, &never));
  Random* const random = world->random();
  const char* const methods[] = {"Step",      "Step",       "Step",   "OpenSession", "GetCanaryValues",
                                 "Heartbeat", "GetRunSpec", "Nothing"};
  const auto call = world->network()->StartCall(connection, methods[random->Below(std::size(methods))]);
  const int frames = static_cast<int>(random->Below(4));
  for (int i = 0; i < frames; ++i) {
    call->SendRequest(DrawFrame(role, random));
    world->Sleep(random->Between(absl::Nanoseconds(1), absl::Milliseconds(5)));
  }
  // Some strangers cancel the call; others keep it open without sending anything.
  world->Sleep(random->Between(absl::Nanoseconds(1), absl::Milliseconds(50)));
  if (random->Chance(0.5)) call->Cancel(absl::CancelledError("the stranger has gone"));
  return absl::OkStatus();
}

// Returns the reply to a call, or nullopt if the call ends or takes too long.
absl::optional<std::string> AwaitReply(Process* process, Call* call) {
  LifeScheduler* const scheduler = process->world()->scheduler();
  const Instant deadline = process->world()->now() + absl::ToInt64Nanoseconds(absl::Milliseconds(100));
  while (call->replies.empty()) {
    if (call->status || process->ghost() || scheduler->WaitFor(call, deadline)) return absl::nullopt;
  }
  return call->TakeReply();
}

// Returns a contribution of noise to the slots of `block`.
StepFrame Noise(StepFrame frame, const SlotBlock& block) {
  static const std::vector<float> noise(1024, 1000.0f);
  frame.block = block;
  for (int64_t slot = block.first; slot < block.end(); ++slot) {
    v1::SlotReport& report = frame.reports.emplace_back();
    report.set_slot(slot);
    report.set_loss(1);
    for (int i = 0; i < TinyModelSpec().update_ops_size(); ++i) {
      report.add_update(reinterpret_cast<const char*>(noise.data()), 2 * sizeof(float));
    }
  }
  int64_t variable = 0;
  for (const v1::VariableSpec& spec : TinyModelSpec().variables()) {
    if (!spec.trainable()) continue;
    StepPiece& piece = frame.gradients.emplace_back();
    piece.variable = variable++;
    piece.content = FloatChunks(noise.data(), spec.shape(0));
  }
  frame.end = true;
  return frame;
}

// A session opened like an honest worker's, and the frame that requests a token in it.
struct OpenedSession {
  std::shared_ptr<Connection> connection;
  StepFrame ask;
};
absl::StatusOr<OpenedSession> OpenSession(Process* process, const ImpostorRole& role, const std::string& name) {
  World* const world = process->world();
  v1::OpenSessionRequest request;
  if (!request.ParseFromString(role.open_session()) || request.canary_digest_size() == 0) {
    return absl::UnavailableError("no worker has opened a session yet");
  }
  request.set_worker(name);
  request.set_incarnation(world->random()->Next());
  const bool never = false;
  OpenedSession opened;
  ASSIGN_OR_RETURN(opened.connection,
                   world->network()->Connect(process, role.target, /*patient=*/false, /*deadline=*/0, &never));
  const auto call = world->network()->StartCall(opened.connection, "OpenSession");
  call->SendRequest(request.SerializeAsString());
  v1::OpenSessionReply session;
  const auto reply = AwaitReply(process, call.get());
  if (!reply || !session.ParseFromString(*reply)) return absl::UnavailableError("no session");
  opened.ask.session_id = session.session_id();
  opened.ask.generation = session.generation();
  opened.ask.end = true;
  return opened;
}

absl::Status Impersonate(Process* process, const ImpostorRole& role) {
  World* const world = process->world();
  Random* const random = world->random();
  ASSIGN_OR_RETURN(OpenedSession session, OpenSession(process, role, "impostor"));
  const auto& connection = session.connection;
  StepFrame& frame = session.ask;
  const auto call = world->network()->StartCall(connection, "Step");
  call->SendRequest(BytesOf(EncodeStepRequest(frame)));
  Decoded<StepReplyFrame> reply;
  do {
    const auto bytes = AwaitReply(process, call.get());
    if (!bytes) break;
    RETURN_IF_ERROR(DecodeStepReply(MessageOf(*bytes, random), &reply));
  } while (!reply.frame.token);
  if (const auto& token = reply.frame.token) {
    const SlotBlock own{token->first_slot(), token->slot_count()};
    const int64_t kind = random->Between(0, 2);
    frame.step = token->step() + (kind == 0 ? random->Between(1, 2) : 0);
    if (kind == 1) --frame.generation;
    const SlotBlock other{own.first == 0 ? own.count : 0, 1};
    call->SendRequest(BytesOf(EncodeStepRequest(Noise(frame, kind == 2 ? other : own))));
    AwaitReply(process, call.get());
  }
  call->Cancel(absl::CancelledError("the impostor has gone"));
  return absl::OkStatus();
}

absl::Status OpenStreamsWithoutReading(Process* process, const DeafRole& role) {
  World* const world = process->world();
  Random* const random = world->random();
  struct Peer {
    OpenedSession session;
    std::shared_ptr<Call> stream;
  };
  std::vector<Peer> peers(random->Between(1, 6));
  for (Peer& peer : peers) {
    ASSIGN_OR_RETURN(peer.session, OpenSession(process, role.peer, "deaf"));
  }
  const absl::Duration longest = random->Chance(0.5) ? absl::Milliseconds(20) : absl::Milliseconds(200);
  const int64_t streams = random->Between(1, 15);
  for (int64_t i = 0; i < streams && !process->ghost() && process->stopped_at() == kNever; ++i) {
    Peer& peer = peers[random->Below(peers.size())];
    const auto call = world->network()->StartCall(peer.session.connection, "Step");
    call->takes_replies = false;
    call->SendRequest(BytesOf(EncodeStepRequest(peer.session.ask)));
    if (peer.stream != nullptr) role.on_over(peer.stream, call);
    peer.stream = call;
    world->Sleep(random->Between(absl::Milliseconds(1), longest));
    if (!random->Chance(0.2)) continue;
    StepFrame last = peer.session.ask;
    last.leave = random->Chance(0.5);
    if (!last.leave) ++last.generation;
    last.end = false;
    call->SendRequest(BytesOf(EncodeStepRequest(last)));
    role.on_over(call, /*successor=*/nullptr);
    peer.stream = nullptr;
  }
  world->Sleep(random->Between(absl::Milliseconds(1), random->Chance(0.5) ? absl::Seconds(1) : absl::Seconds(15)));
  return absl::OkStatus();
}

}  // namespace

int RunDeaf(Process* process, const DeafRole& role) {
  OpenStreamsWithoutReading(process, role).IgnoreError();
  return 0;
}

int RunImpostor(Process* process, const ImpostorRole& role) {
  World* const world = process->world();
  const int64_t visits = world->random()->Between(1, 4);
  for (int64_t i = 0; i < visits && !process->ghost() && process->stopped_at() == kNever; ++i) {
    Impersonate(process, role).IgnoreError();
    world->Sleep(world->random()->Between(absl::Nanoseconds(1), absl::Milliseconds(20)));
  }
  return 0;
}

int RunStranger(Process* process, const StrangerRole& role) {
  World* const world = process->world();
  const int64_t visits = world->random()->Between(1, 20);
  for (int64_t i = 0; i < visits && !process->ghost() && process->stopped_at() == kNever; ++i) {
    Bother(process, role).IgnoreError();
    world->Sleep(world->random()->Between(absl::Nanoseconds(1), absl::Milliseconds(20)));
  }
  return 0;
}

}  // namespace simulation
}  // namespace lockstep
