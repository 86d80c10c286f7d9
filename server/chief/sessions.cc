#include "lockstep/server/chief/sessions.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/contract/canary_values.h"
#include "lockstep/server/chief/run/program_change.h"
#include "lockstep/server/chief/run/run_identity.h"
#include "lockstep/v1/event.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

// Maximum length of each string that a session keeps, in bytes.
constexpr size_t kMaxName = 256;
constexpr size_t kDigestDigits = 64;
// Limits on a reply with values for the canary, in bytes and in pieces.
constexpr size_t kMaxCanaryBytes = 1 << 20;
constexpr int kMaxCanaryPieces = 4096;

bool IsControl(char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }

absl::Status CheckSize(const char* what, const std::string& text) {
  if (text.size() <= kMaxName) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the worker's ", what, " has ", text.size(), " bytes; at most ", kMaxName, " are allowed"));
}

// Rejects a name that is too long or contains control characters. Names are shown in logs and in terminals, which would
// interpret some of these characters as commands.
absl::Status CheckName(const char* what, const std::string& name) {
  RETURN_IF_ERROR(CheckSize(what, name));
  if (std::none_of(name.begin(), name.end(), IsControl)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the worker's ", what, " has a control character"));
}

// Returns InvalidArgument unless the text is empty or the digest of initial values.
absl::Status CheckDigest(const std::string& digest) {
  const auto is_digit = [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c)) && !absl::ascii_isupper(static_cast<unsigned char>(c));
  };
  if (digest.empty() || (digest.size() == kDigestDigits && std::all_of(digest.begin(), digest.end(), is_digit))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("initial_values_digest has ", digest.size(), " bytes; must be ",
                                                 kDigestDigits, " hexadecimal digits in lower case"));
}

absl::Status CheckNames(const v1::OpenSessionRequest& request) {
  RETURN_IF_ERROR(CheckName("name", request.worker()));
  RETURN_IF_ERROR(CheckName("host", request.host()));
  RETURN_IF_ERROR(CheckName("run_id", request.run_id()));
  RETURN_IF_ERROR(CheckDigest(request.initial_values_digest()));
  const v1::BuildInfo& build = request.build();
  RETURN_IF_ERROR(CheckName("version", build.version()));
  RETURN_IF_ERROR(CheckName("revision", build.revision()));
  RETURN_IF_ERROR(CheckName("compiler", build.compiler()));
  return CheckName("instruction set", build.instruction_set());
}

}  // namespace

v1::GetRunSpecReply Sessions::GetRunSpec() const {
  v1::GetRunSpecReply reply;
  run_->settings.Fill(&reply);
  reply.set_generation(run_->history.generation());
  return reply;
}

absl::Status Sessions::CheckOwnedForWorker() {
  const absl::Status owned = run_->history.CheckOwned();
  return absl::IsFailedPrecondition(owned) ? absl::UnavailableError(owned.message()) : owned;
}

absl::StatusOr<std::shared_ptr<const RunContract>> Sessions::AdoptFunctions(std::shared_ptr<const RunContract> known,
                                                                            const v1::OpenSessionRequest& request) {
  const absl::Status agreed = known->Check(request);
  if (!absl::IsFailedPrecondition(agreed)) return agreed.ok() ? absl::StatusOr<decltype(known)>(known) : agreed;
  std::vector<RunContract::Forgets> may_forget;
  {
    MutexLock lock(&run_->mutex);
    if (run_->canary_may_change) may_forget.push_back(RunContract::Forgets::kCanary);
    if (run_->parts_may_change) may_forget.push_back(RunContract::Forgets::kPartsAndCanary);
  }
  for (const RunContract::Forgets forgets : may_forget) {
    auto rest = std::make_shared<const RunContract>(*known, forgets);
    if (!rest->Check(request).ok()) continue;
    const int64_t step = run_->history.record().finished_step();
    const std::string what = absl::StrCat("computes other gradients: ", agreed.message());
    LOG(INFO) << "from step " << step << " on the run's program " << what;
    run_->history.Note([&](v1::RunRecord* record) { AddProgramChange(step, what, record); });
    return rest;
  }
  return agreed;
}

absl::StatusOr<uint64_t> Sessions::TakeInitialValues(const v1::OpenSessionRequest& request, const std::string& peer,
                                                     absl::optional<BroughtValues::Whole>* values) {
  if (!run_->takes_initial_values()) return 0;
  uint64_t fresh_id = 0;
  if (!request.initial_values_digest().empty()) {
    RETURN_IF_ERROR(run_->CheckBroughtValuesFit(request.model()));
    fresh_id = std::max<uint64_t>(run_->options.machine.draw_session_id(), 1);
  }
  MutexLock lock(&run_->mutex);
  ASSIGN_OR_RETURN(const uint64_t id, run_->brought.Begin(request, peer, fresh_id, run_->options.clock->Now()));
  if (id == 0) *values = run_->brought.Take();
  return id;
}

absl::StatusOr<uint64_t> Sessions::DeclareFirst(const v1::OpenSessionRequest& request, const std::string& peer) {
  auto contract = std::make_shared<const RunContract>(request);
  RETURN_IF_ERROR(contract->Check(request));  // checks the number of canary digests
  RETURN_IF_ERROR(CheckOwnedForWorker());
  absl::optional<BroughtValues::Whole> values;
  ASSIGN_OR_RETURN(const uint64_t bringing, TakeInitialValues(request, peer, &values));
  if (bringing != 0) return bringing;
  const absl::Status started = run_->StartModel(std::move(contract), /*changes_settings=*/false, std::move(values));
  // A successor may have taken over the logdir meanwhile.
  if (absl::IsFailedPrecondition(started)) RETURN_IF_ERROR(CheckOwnedForWorker());
  RETURN_IF_ERROR(started);
  RunEvent declared{RunEvent::kDeclared, 0, IdentityOf(request).ToString()};
  declared.count = request.model().variables_size();
  run_->OnEvent(declared);
  return 0;
}

absl::Status Sessions::Declare(std::shared_ptr<const RunContract> known, const v1::OpenSessionRequest& request) {
  ASSIGN_OR_RETURN(known, AdoptFunctions(std::move(known), request));
  auto contract = std::make_shared<const RunContract>(*known, request);
  RETURN_IF_ERROR(CheckOwnedForWorker());
  RETURN_IF_ERROR(run_->WriteRecord(*contract));
  MutexLock lock(&run_->mutex);
  run_->contract = std::move(contract);
  run_->parts_may_change = false;
  if (request.canary_digest_size() > 0) run_->canary_may_change = false;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Sessions::Agree(const v1::OpenSessionRequest& request, int64_t changes,
                                         const std::string& peer) {
  std::shared_ptr<const RunContract> contract;
  bool declares = false;
  {
    MutexLock lock(&run_->mutex);
    const int64_t newest = run_->settings.changes();
    if (changes < run_->first_changes || changes > newest) {
      return absl::AbortedError(absl::StrCat("settings of the run were changed: the worker has those after ", changes,
                                             " changes, the run had ", newest));
    }
    contract = run_->ContractFor(changes);
    // The other workers must not occupy the declaration while one brings values, which ends with a declaration.
    if (contract == nullptr) RETURN_IF_ERROR(run_->brought.CheckFree(request, peer, run_->options.clock->Now()));
    // Only a worker with the newest settings makes declarations, because the run's declarations apply to those.
    declares = changes == newest && (contract == nullptr || contract->Lacks(request) || run_->parts_may_change ||
                                     (run_->canary_may_change && request.canary_digest_size() > 0));
    RETURN_IF_ERROR(declares ? run_->life.BeginDeclaration() : run_->life.CheckOpen());
  }
  absl::StatusOr<uint64_t> bringing = 0;
  if (!declares) {
    RETURN_IF_ERROR(contract->Check(request));
    return bringing;
  }
  if (contract == nullptr) {
    bringing = DeclareFirst(request, peer);
  } else {
    const absl::Status declared = Declare(std::move(contract), request);
    if (!declared.ok()) bringing = declared;
  }
  MutexLock lock(&run_->mutex);
  run_->life.EndDeclaration();
  run_->changed.SignalAll();
  return bringing;
}

void Sessions::NoteInitialValues(const v1::OpenSessionRequest& request) const {
  const v1::RunRecord::InitialValues of_run = run_->history.initial_values();
  if (request.initial_values_digest().empty() || request.initial_values_digest() == of_run.digest()) return;
  // The worker can read in the configuration what the run began from.
  if (!run_->options.config.checkpoint().warm_start().empty()) return;
  LOG(INFO) << IdentityOf(request).ToString() << " brings the initial values " << request.initial_values_digest()
            << ", which are not used: the run began "
            << (of_run.digest().empty()
                    ? "without values of a worker"
                    : absl::StrCat("from ", of_run.digest(), ", which ", of_run.brought_by(), " brought"));
}

absl::Status Sessions::CheckRun(const v1::OpenSessionRequest& request) {
  const std::string run_id = run_->history.run_id();
  if (request.run_id().empty() || request.run_id() == run_id) return absl::OkStatus();
  RunOrigin origin;
  origin.unexpected = run_->history.found_nothing() && !run_->options.new_run;
  {
    MutexLock lock(&run_->mutex);
    if (run_->life.stop_requested()) return absl::UnavailableError("the chief is stopping");
    if (run_->life.over()) origin.unexpected = false;
    origin.begun = run_->begun;
    if (run_->training != nullptr) origin.step = run_->training->sync()->step();
  }
  const bool wrong_logdir = ShowsWrongLogdir(origin, request.last_step(), run_->options.clock->Now());
  return wrong_logdir ? AbandonFor(request) : RefusedForItsRun(request, run_id);
}

absl::Status Sessions::AbandonFor(const v1::OpenSessionRequest& request) {
  RETURN_IF_ERROR(CheckOwnedForWorker());
  v1::RunRecord::OtherRun other;
  other.set_run_id(request.run_id());
  other.set_step(request.last_step());
  other.set_worker(IdentityOf(request).ToString());
  const absl::Status noted = run_->history.NoteOtherRun(other);
  LOG_IF(ERROR, !noted.ok()) << "could not record the other run: " << noted.message();
  absl::Status why = WrongLogdir(other, run_->options.logdir, run_->history.run_id());
  MutexLock lock(&run_->mutex);
  run_->life.Abandon(why);
  run_->changed.SignalAll();
  return absl::UnavailableError(absl::StrCat("the chief ends: ", why.message()));
}

void Sessions::Refuse(const v1::OpenSessionRequest& request, const absl::Status& why, const std::string& peer) {
  run_->OnEvent({RunEvent::kRefused, 0, IdentityOf(request).ToString(), "", why});
  MutexLock lock(&run_->mutex);
  const auto id = run_->sessions.Find(request.worker(), request.incarnation());
  if (id && run_->sessions.IsOf(*id, peer) && !run_->training->sync()->connected(*id)) run_->sessions.Remove(*id);
}

bool Sessions::RemoveOldestSession() {
  for (const uint64_t id : run_->sessions.OldestFirst()) {
    if (!run_->training->sync()->connected(id)) return run_->sessions.Remove(id);
  }
  return false;
}

absl::StatusOr<uint64_t> Sessions::FindOrAddSession(const v1::OpenSessionRequest& request, int64_t changes,
                                                    const std::string& peer) {
  while (true) {
    const uint64_t fresh_id = run_->options.machine.draw_session_id();
    SessionTable::Opened session;
    {
      MutexLock lock(&run_->mutex);
      session = run_->sessions.Open(IdentityOf(request), request.incarnation(), fresh_id, run_->options.clock->Now(),
                                    changes, peer);
      if (session.outcome == SessionTable::Outcome::kFull && !RemoveOldestSession()) {
        return absl::UnavailableError(absl::StrCat("all of ", run_->sessions.size(), " sessions are in use"));
      }
      run_->changed.SignalAll();
    }
    if (session.outcome == SessionTable::Outcome::kAdded) {
      run_->OnEvent(
          {RunEvent::kJoined, 0, absl::CHexEscape(request.worker()), absl::StrCat(ShortSessionId(session.id))});
      LOG_IF(INFO, !peer.empty()) << "chief: session " << ShortSessionId(session.id) << " is bound to the peer "
                                  << peer;
    }
    if (session.outcome == SessionTable::Outcome::kOthers) {
      return absl::PermissionDeniedError(
          absl::StrCat("another peer than ", peer, " has opened the session of ", IdentityOf(request).ToString()));
    }
    if (session.id != 0) return session.id;
  }
}

absl::StatusOr<v1::OpenSessionReply> Sessions::OpenSession(const v1::OpenSessionRequest& request,
                                                           const std::string& peer) {
  RETURN_IF_ERROR(CheckNames(request));
  const int64_t changes = request.has_changes() ? request.changes() : run_->settings.changes();
  absl::Status agreed = CheckVersions(request, run_->options.machine.host);
  if (agreed.ok()) agreed = CheckTransforms(request, run_->settings.spec()->optimizer());
  if (agreed.ok()) agreed = CheckRun(request);
  absl::StatusOr<uint64_t> bringing = 0;
  if (agreed.ok()) bringing = Agree(request, changes, peer);
  if (!bringing.ok()) agreed = bringing.status();
  if (absl::IsFailedPrecondition(agreed)) Refuse(request, agreed, peer);
  RETURN_IF_ERROR(agreed);
  v1::OpenSessionReply reply;
  if (*bringing != 0) {
    reply.set_session_id(*bringing);
    reply.set_generation(run_->history.generation());
    reply.set_initial_values_wanted(true);
    return reply;
  }
  ASSIGN_OR_RETURN(const uint64_t id, FindOrAddSession(request, changes, peer));
  {
    MutexLock lock(&run_->mutex);
    // A worker that joins after the end does not compute anything, so it needs no canary.
    if (request.canary_digest_size() > 0 || run_->life.over()) run_->sessions.MarkChecked(id);
    reply.set_canary_wanted(!run_->sessions.IsChecked(id));
  }
  if (reply.canary_wanted()) NoteInitialValues(request);
  reply.set_initial_values_digest(run_->history.initial_values().digest());
  reply.set_session_id(id);
  reply.set_generation(run_->history.generation());
  reply.set_run_id(run_->history.run_id());
  reply.set_global_step(run_->FindTraining()->sync()->step());
  reply.set_piece_elements(ParameterLayout::kSegmentElements);
  reply.set_lease_seconds(run_->options.config.cluster().lease_seconds());
  if (run_->shared_memory != nullptr) *reply.mutable_shared_memory() = run_->shared_memory->handle();
  return reply;
}

absl::StatusOr<v1::SetInitialValuesReply> Sessions::SetInitialValues(const v1::SetInitialValuesRequest& request,
                                                                     const std::string& peer) {
  if (request.generation() != run_->history.generation()) {
    return absl::AbortedError(
        absl::StrCat("generation ", request.generation(), " is unknown; the chief's is ", run_->history.generation()));
  }
  MutexLock lock(&run_->mutex);
  RETURN_IF_ERROR(run_->brought.Add(request, peer, run_->options.clock->Now()));
  return v1::SetInitialValuesReply();
}

absl::StatusOr<v1::GetCanaryValuesReply> Sessions::GetCanaryValues(const v1::GetCanaryValuesRequest& request,
                                                                   const std::string& peer) {
  RETURN_IF_ERROR(CheckSession(request.session_id(), request.generation(), peer));
  const ParameterLayout& layout = run_->FindTraining()->layout();
  const auto segments = static_cast<int64_t>(layout.segments().size());
  if (request.first_segment() < 0 || request.first_segment() >= segments) {
    return absl::InvalidArgumentError(
        absl::StrCat("values from segment ", request.first_segment(), " on; the model has ", segments));
  }
  v1::GetCanaryValuesReply reply;
  std::vector<float> values;
  size_t bytes = 0;
  for (int64_t i = request.first_segment(); i < segments; ++i) {
    const ParameterLayout::Segment& segment = layout.segments()[i];
    const ParameterLayout::Variable& variable = layout.variables()[segment.variable];
    bytes += static_cast<size_t>(segment.elements) * variable.element_bytes;
    if (bytes > kMaxCanaryBytes || reply.value_size() == kMaxCanaryPieces) break;
    v1::TensorPiece* const piece = reply.add_value();
    piece->set_variable(static_cast<uint32_t>(segment.variable));
    piece->set_offset(static_cast<uint64_t>(segment.offset));
    if (variable.spec.dtype() != v1::DT_FLOAT) {
      piece->set_dtype(variable.spec.dtype());
      piece->mutable_content()->assign(static_cast<size_t>(segment.elements) * variable.element_bytes, '\0');
      continue;
    }
    values.resize(static_cast<size_t>(segment.elements));
    FillCanaryValues(run_->options.config.training().seed(), variable, segment.offset, absl::MakeSpan(values));
    piece->set_content(values.data(), values.size() * sizeof(float));
  }
  return reply;
}

absl::StatusOr<v1::HeartbeatReply> Sessions::Heartbeat(const v1::HeartbeatRequest& request, const std::string& peer) {
  SyncReplicas* replicas = nullptr;
  v1::HeartbeatReply reply;
  {
    MutexLock lock(&run_->mutex);
    RETURN_IF_ERROR(run_->sessions.Use(request.session_id(), request.generation(), run_->options.clock->Now(), peer));
    replicas = run_->training->sync();
    reply.set_finished(run_->life.over());
    if (run_->life.ended()) reply.set_ended(std::string(run_->life.ended()->message()));
  }
  // Only a worker that is computing renews its lease.
  if (!request.paused()) replicas->Heartbeat(request.session_id());
  reply.set_global_step(replicas->step());
  return reply;
}

absl::StatusOr<v1::RequestEndReply> Sessions::RequestFinish(const v1::RequestEndRequest& request,
                                                            const std::string& peer) {
  RETURN_IF_ERROR(CheckSize("reason", request.reason()));
  std::string worker;
  {
    MutexLock lock(&run_->mutex);
    RETURN_IF_ERROR(
        run_->sessions.UseChecked(request.session_id(), request.generation(), run_->options.clock->Now(), peer));
    worker = run_->sessions.WorkerOf(request.session_id()).ToString();
  }
  return RequestFinishBy(worker, request);
}

absl::StatusOr<v1::RequestEndReply> Sessions::RequestFinishBy(const std::string& peer,
                                                              const v1::RequestEndRequest& request) {
  RETURN_IF_ERROR(CheckSize("reason", request.reason()));
  std::string reason = request.reason();
  std::replace_if(reason.begin(), reason.end(), IsControl, ' ');  // it may have several lines
  MutexLock lock(&run_->mutex);
  // An operator may call this before the first worker has declared the model. The end could not be recorded then, and
  // the request would be dropped.
  if (run_->training == nullptr) return absl::UnavailableError("the chief does not know the model yet");
  run_->life.RequestFinish(absl::StrCat(peer, " asked for it", reason.empty() ? "" : ": ", reason));
  run_->changed.SignalAll();
  return v1::RequestEndReply();
}

absl::StatusOr<v1::AddSummaryReply> Sessions::AddSummary(const v1::AddSummaryRequest& request,
                                                         const std::string& peer) {
  {
    MutexLock lock(&run_->mutex);
    RETURN_IF_ERROR(
        run_->sessions.UseChecked(request.session_id(), request.generation(), run_->options.clock->Now(), peer));
  }
  v1::Summary summary;
  if (!summary.ParseFromString(request.summary())) {
    return absl::InvalidArgumentError(absl::StrCat(request.summary().size(), " bytes are not a summary"));
  }
  Training* const training = run_->FindTraining();
  const int64_t step = request.has_global_step() ? request.global_step() : training->sync()->step();
  RETURN_IF_ERROR(training->AddSummary(std::move(summary), step));
  return v1::AddSummaryReply();
}

absl::Status Sessions::CheckSession(uint64_t session_id, int64_t generation, const std::string& peer) {
  MutexLock lock(&run_->mutex);
  return run_->sessions.Use(session_id, generation, run_->options.clock->Now(), peer);
}

absl::StatusOr<std::shared_ptr<StepConnection>> Sessions::OpenStep(uint64_t session_id, int64_t generation,
                                                                   ValuePath value_path,
                                                                   std::shared_ptr<StepListener> listener,
                                                                   const std::string& peer, std::string address) {
  WorkerIdentity worker;
  int64_t changes = 0;
  {
    MutexLock lock(&run_->mutex);
    const absl::Time now = run_->options.clock->Now();
    RETURN_IF_ERROR(run_->sessions.Use(session_id, generation, now, peer));
    if (run_->life.stop_requested()) return absl::UnavailableError("the chief is stopping");
    RETURN_IF_ERROR(run_->sessions.UseChecked(session_id, generation, now, peer));
    RETURN_IF_ERROR(run_->sessions.MarkStreamed(session_id, generation, now, peer));
    worker = run_->sessions.WorkerOf(session_id);
    worker.address = std::move(address);
    changes = run_->sessions.ChangesOf(session_id);
  }
  // A status with a thousand workers of one build does not repeat it.
  if (worker.build.SerializeAsString() == run_->options.machine.build.SerializeAsString()) worker.build.Clear();
  return run_->FindTraining()->sync()->Connect(session_id, worker, value_path, std::move(listener), changes);
}

}  // namespace lockstep
