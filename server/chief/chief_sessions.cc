// The calls of workers: what they declare, their sessions and streams.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/contract/canary_values.h"
#include "lockstep/server/chief/chief.h"

namespace lockstep {
namespace {

// The bytes of each string that a session keeps.
constexpr size_t kMaxName = 256;
// Of a reply with values for the canary.
constexpr int64_t kMaxCanaryElements = (1 << 20) / sizeof(float);
constexpr int kMaxCanaryPieces = 4096;

absl::Status CheckName(const char* what, const std::string& name) {
  if (name.size() <= kMaxName) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the worker's ", what, " has ", name.size(), " bytes; at most ", kMaxName, " are allowed"));
}

absl::Status CheckNames(const v1::OpenSessionRequest& request) {
  RETURN_IF_ERROR(CheckName("name", request.worker()));
  RETURN_IF_ERROR(CheckName("host", request.host()));
  const v1::BuildInfo& build = request.build();
  RETURN_IF_ERROR(CheckName("version", build.version()));
  RETURN_IF_ERROR(CheckName("revision", build.revision()));
  RETURN_IF_ERROR(CheckName("compiler", build.compiler()));
  return CheckName("instruction set", build.instruction_set());
}

}  // namespace

absl::Status Chief::CheckOwnedForWorker() {
  const absl::Status owned = history_.CheckOwned();
  return absl::IsFailedPrecondition(owned) ? absl::UnavailableError(owned.message()) : owned;
}

absl::Status Chief::Declare(const RunContract* known, const v1::OpenSessionRequest& request) {
  if (known == nullptr) {
    auto contract = std::make_shared<const RunContract>(request);
    RETURN_IF_ERROR(contract->Check(request));  // its canary, which no other is there to be held against
    RETURN_IF_ERROR(CheckOwnedForWorker());
    RETURN_IF_ERROR(StartModel(std::move(contract)));
    RunEvent declared{RunEvent::kDeclared, 0, IdentityOf(request).ToString()};
    declared.count = request.model().variables_size();
    OnEvent(declared);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(known->Check(request));
  auto contract = std::make_shared<const RunContract>(*known, request);
  RETURN_IF_ERROR(CheckOwnedForWorker());
  RETURN_IF_ERROR(WriteRecord(*contract));
  MutexLock lock(&mutex_);
  contract_ = std::move(contract);
  return absl::OkStatus();
}

absl::Status Chief::Agree(const v1::OpenSessionRequest& request) {
  std::shared_ptr<const RunContract> contract;
  bool declares = false;
  {
    MutexLock lock(&mutex_);
    contract = contract_;
    declares = contract == nullptr || contract->Lacks(request);
    RETURN_IF_ERROR(declares ? life_.BeginDeclaration() : life_.CheckOpen());
  }
  if (!declares) return contract->Check(request);
  const absl::Status status = Declare(contract.get(), request);
  MutexLock lock(&mutex_);
  life_.EndDeclaration();
  changed_.SignalAll();
  return status;
}

void Chief::Refuse(const v1::OpenSessionRequest& request, const absl::Status& why) {
  OnEvent({RunEvent::kRefused, 0, IdentityOf(request).ToString(), "", why});
  MutexLock lock(&mutex_);
  const auto id = sessions_.Find(request.worker(), request.incarnation());
  if (id && !training_->sync()->connected(*id)) sessions_.Remove(*id);
}

bool Chief::RemoveOldestSession() {
  for (const uint64_t id : sessions_.OldestFirst()) {
    if (!training_->sync()->connected(id)) return sessions_.Remove(id);
  }
  return false;
}

void Chief::ExpireSessions(absl::Time now) {
  for (const uint64_t id : sessions_.Idle(now)) {
    if (!training_->sync()->connected(id)) sessions_.Remove(id);
  }
}

absl::StatusOr<uint64_t> Chief::FindOrAddSession(const v1::OpenSessionRequest& request, int64_t changes) {
  while (true) {
    const uint64_t fresh_id = options_.machine.draw_session_id();
    SessionTable::Opened session;
    {
      MutexLock lock(&mutex_);
      if (changes != settings_.changes()) return absl::AbortedError("settings of the run were changed");
      session = sessions_.Open(IdentityOf(request), request.incarnation(), fresh_id, options_.clock->Now());
      if (session.outcome == SessionTable::Outcome::kFull && !RemoveOldestSession()) {
        return absl::UnavailableError(absl::StrCat("all of ", sessions_.size(), " sessions are in use"));
      }
      changed_.SignalAll();
    }
    if (session.outcome == SessionTable::Outcome::kAdded) {
      OnEvent({RunEvent::kJoined, 0, absl::CHexEscape(request.worker()), absl::StrCat(ShortSessionId(session.id))});
    }
    if (session.id != 0) return session.id;
  }
}

absl::StatusOr<v1::OpenSessionReply> Chief::OpenSession(const v1::OpenSessionRequest& request) {
  RETURN_IF_ERROR(CheckNames(request));
  const int64_t changes = settings_.changes();
  if (request.has_changes() && request.changes() != changes) {
    return absl::AbortedError(absl::StrCat("settings of the run were changed: the worker has those after ",
                                           request.changes(), " changes, the run had ", changes));
  }
  absl::Status agreed = CheckVersions(request, options_.machine.host);
  if (agreed.ok()) agreed = Agree(request);
  // Settings that were changed since have another contract, and the worker asks for them.
  if (!agreed.ok() && changes != settings_.changes()) return absl::AbortedError("settings of the run were changed");
  if (absl::IsFailedPrecondition(agreed)) Refuse(request, agreed);
  RETURN_IF_ERROR(agreed);
  ASSIGN_OR_RETURN(const uint64_t id, FindOrAddSession(request, changes));
  v1::OpenSessionReply reply;
  {
    MutexLock lock(&mutex_);
    // Who comes to the end computes nothing more.
    if (request.canary_digest_size() > 0 || life_.over()) sessions_.MarkChecked(id);
    reply.set_canary_wanted(!sessions_.IsChecked(id));
  }
  reply.set_session_id(id);
  reply.set_generation(generation());
  reply.set_global_step(training()->sync()->step());
  reply.set_piece_elements(ParameterLayout::kSegmentElements);
  reply.set_lease_seconds(options_.config.cluster().lease_seconds());
  if (shared_memory_ != nullptr) *reply.mutable_shared_memory() = shared_memory_->handle();
  return reply;
}

absl::StatusOr<v1::GetCanaryValuesReply> Chief::GetCanaryValues(const v1::GetCanaryValuesRequest& request) {
  RETURN_IF_ERROR(CheckSession(request.session_id(), request.generation()));
  const ParameterLayout& layout = training()->layout();
  const auto segments = static_cast<int64_t>(layout.segments().size());
  if (request.first_segment() < 0 || request.first_segment() >= segments) {
    return absl::InvalidArgumentError(
        absl::StrCat("values from segment ", request.first_segment(), " on; the model has ", segments));
  }
  v1::GetCanaryValuesReply reply;
  std::vector<float> values;
  int64_t elements = 0;
  for (int64_t i = request.first_segment(); i < segments; ++i) {
    const ParameterLayout::Segment& segment = layout.segments()[i];
    elements += segment.elements;
    if (elements > kMaxCanaryElements || reply.value_size() == kMaxCanaryPieces) break;
    values.resize(static_cast<size_t>(segment.elements));
    FillCanaryValues(options_.config.training().seed(), layout.variables()[segment.variable], segment.offset,
                     absl::MakeSpan(values));
    v1::TensorPiece* const piece = reply.add_value();
    piece->set_variable(static_cast<uint32_t>(segment.variable));
    piece->set_offset(static_cast<uint64_t>(segment.offset));
    piece->set_content(values.data(), values.size() * sizeof(float));
  }
  return reply;
}

absl::StatusOr<v1::HeartbeatReply> Chief::Heartbeat(const v1::HeartbeatRequest& request) {
  SyncReplicas* replicas = nullptr;
  v1::HeartbeatReply reply;
  {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(sessions_.Use(request.session_id(), request.generation(), options_.clock->Now()));
    replicas = training_->sync();
    reply.set_finished(life_.over());
    if (life_.ended()) reply.set_ended(std::string(life_.ended()->message()));
  }
  // A lease is for one who computes.
  if (!request.paused()) replicas->Heartbeat(request.session_id());
  reply.set_global_step(replicas->step());
  return reply;
}

absl::StatusOr<v1::RequestEndReply> Chief::RequestEnd(const v1::RequestEndRequest& request) {
  RETURN_IF_ERROR(CheckName("reason", request.reason()));
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(sessions_.UseChecked(request.session_id(), request.generation(), options_.clock->Now()));
  const std::string& worker = sessions_.WorkerOf(request.session_id()).ToString();
  life_.WantEnd(absl::StrCat(worker, " asked for it", request.reason().empty() ? "" : ": ", request.reason()));
  changed_.SignalAll();
  return v1::RequestEndReply();
}

absl::Status Chief::CheckSession(uint64_t session_id, int64_t generation) {
  MutexLock lock(&mutex_);
  return sessions_.Use(session_id, generation, options_.clock->Now());
}

absl::StatusOr<std::shared_ptr<StepConnection>> Chief::OpenStep(uint64_t session_id, int64_t generation,
                                                                ValuePath value_path,
                                                                std::shared_ptr<StepListener> listener) {
  WorkerIdentity worker;
  Training* const training = this->training();
  // Before the session is looked up: a change that comes later ends the session, or closes the stream.
  const int64_t settings = training == nullptr ? 0 : training->sync()->settings();
  {
    MutexLock lock(&mutex_);
    const absl::Time now = options_.clock->Now();
    RETURN_IF_ERROR(sessions_.Use(session_id, generation, now));
    if (life_.stop_requested()) return absl::UnavailableError("the chief is stopping");
    RETURN_IF_ERROR(sessions_.UseChecked(session_id, generation, now));
    RETURN_IF_ERROR(sessions_.MarkStreamed(session_id, generation, now));
    worker = sessions_.WorkerOf(session_id);
  }
  auto connection = training->sync()->Connect(session_id, worker, value_path, std::move(listener), settings);
  if (connection == nullptr) return absl::AbortedError("settings of the run were changed");
  return connection;
}

}  // namespace lockstep
