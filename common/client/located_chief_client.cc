#include "lockstep/common/client/located_chief_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/cluster/end_of_run.h"
#include "lockstep/common/cluster/replaced_chief.h"

namespace lockstep {
namespace {

// Returns true if the error may come from an address without a chief, so the next target should be tried.
bool IsNoAnswer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsUnknown(status) ||
         absl::IsInternal(status) || absl::IsUnimplemented(status);
}

absl::Status Stopped() { return absl::CancelledError("the client was stopped"); }

}  // namespace

LocatedChiefClient::LocatedChiefClient(FileSystem* fs, MasterAddress address, Factory factory)
    : fs_(fs), address_(std::move(address)), factory_(std::move(factory)) {}

std::unique_ptr<ChiefClient> LocatedChiefClient::NewClient(const std::string& target) {
  return factory_(target, [this](const v1::HeartbeatRequest& heartbeat, absl::Duration silence) {
    return OnSilence(heartbeat, silence);
  });
}

absl::StatusOr<std::shared_ptr<ChiefClient>> LocatedChiefClient::ClientOf(const std::string& target) {
  {
    MutexLock lock(&mutex_);
    if (stopped_) return Stopped();
    const auto it = clients_.find(target);
    if (it != clients_.end()) return it->second;
  }
  std::shared_ptr<ChiefClient> made = NewClient(target);
  MutexLock lock(&mutex_);
  if (stopped_) return Stopped();
  return clients_.try_emplace(target, std::move(made)).first->second;  // another thread may have been faster
}

absl::StatusOr<std::shared_ptr<ChiefClient>> LocatedChiefClient::Found() {
  {
    MutexLock lock(&mutex_);
    if (found_.client != nullptr) return found_.client;
  }
  if (address_.targets.size() == 1) return ClientOf(address_.targets[0]);
  return absl::UnavailableError("no chief was found yet");
}

absl::StatusOr<std::vector<std::string>> LocatedChiefClient::SearchOrder() {
  ASSIGN_OR_RETURN(std::vector<std::string> targets, FindTargets(fs_, address_));
  std::string successor;
  {
    MutexLock lock(&mutex_);
    successor = successor_;
  }
  std::stable_partition(targets.begin(), targets.end(),
                        [&successor](const std::string& target) { return target == successor; });
  return targets;
}

absl::StatusOr<LocatedChiefClient::Place> LocatedChiefClient::Search(const Call& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> targets, SearchOrder());
  std::vector<std::string> failures;
  for (const std::string& target : targets) {
    ASSIGN_OR_RETURN(std::shared_ptr<ChiefClient> client, ClientOf(target));
    const absl::Status status = call(client.get());
    if (status.ok()) return Place{target, std::move(client)};
    if (!IsNoAnswer(status) || targets.size() == 1) return status;
    failures.push_back(absl::StrCat(target, ": ", status.message()));
    MutexLock lock(&mutex_);
    if (target == successor_) successor_.clear();
  }
  return absl::UnavailableError(absl::StrJoin(failures, "; "));
}

absl::StatusOr<v1::GetRunSpecReply> LocatedChiefClient::GetRunSpec() {
  absl::StatusOr<v1::GetRunSpecReply> reply;
  ASSIGN_OR_RETURN(Place found, Search([&reply](ChiefClient* client) {
                     reply = client->GetRunSpec();
                     return reply.status();
                   }));
  MutexLock lock(&mutex_);
  std::swap(found_, found);  // the lock is released before an old client is destroyed
  return reply;
}

absl::StatusOr<v1::RunStatus> LocatedChiefClient::GetStatus() {
  absl::StatusOr<v1::RunStatus> reply;
  RETURN_IF_ERROR(Search([&reply](ChiefClient* client) {
                    reply = client->GetStatus();
                    return reply.status();
                  }).status());
  return reply;
}

absl::StatusOr<v1::ReadVariablesReply> LocatedChiefClient::ReadVariables(const v1::ReadVariablesRequest& request) {
  std::shared_ptr<ChiefClient> chief;
  if (request.read_id() != 0) {
    MutexLock lock(&mutex_);
    chief = read_from_;
  }
  if (chief != nullptr) return chief->ReadVariables(request);
  absl::StatusOr<v1::ReadVariablesReply> reply;
  ASSIGN_OR_RETURN(Place place, Search([&](ChiefClient* client) {
                     reply = client->ReadVariables(request);
                     return reply.status();
                   }));
  MutexLock lock(&mutex_);
  read_from_.swap(place.client);  // the lock is released before an old client is destroyed
  return reply;
}

absl::StatusOr<v1::OpenSessionReply> LocatedChiefClient::OpenSession(const v1::OpenSessionRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ChiefClient> chief, Found());
  ASSIGN_OR_RETURN(v1::OpenSessionReply reply, chief->OpenSession(request));
  if (reply.initial_values_wanted()) return reply;  // there is no session yet
  MutexLock lock(&mutex_);
  lease_ = absl::Seconds(reply.lease_seconds());
  return reply;
}

absl::StatusOr<v1::SetInitialValuesReply> LocatedChiefClient::SetInitialValues(
    const v1::SetInitialValuesRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ChiefClient> chief, Found());
  return chief->SetInitialValues(request);
}

absl::StatusOr<v1::GetCanaryValuesReply> LocatedChiefClient::GetCanaryValues(
    const v1::GetCanaryValuesRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ChiefClient> chief, Found());
  return chief->GetCanaryValues(request);
}

absl::StatusOr<v1::RequestEndReply> LocatedChiefClient::RequestFinish(const v1::RequestEndRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ChiefClient> chief, Found());
  return chief->RequestFinish(request);
}

absl::StatusOr<v1::AddSummaryReply> LocatedChiefClient::AddSummary(const v1::AddSummaryRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ChiefClient> chief, Found());
  return chief->AddSummary(request);
}

absl::StatusOr<v1::HeartbeatReply> LocatedChiefClient::Heartbeat(const v1::HeartbeatRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ChiefClient> chief, Found());
  return chief->Heartbeat(request);
}

absl::Status LocatedChiefClient::OnSilence(const v1::HeartbeatRequest& heartbeat, absl::Duration silence) {
  std::string silent;
  bool probes_silent = false;
  {
    MutexLock lock(&mutex_);
    // The heartbeat began up to a third of a lease after the chief's last sign of life. A standby replaces a frozen
    // chief a lease after that.
    if (silence < lease_ * 2 / 3) return absl::OkStatus();
    if (stopped_) return Stopped();
    silent = found_.target;
    // A call to a frozen process blocks this thread, which must look at the file when a standby rewrites it.
    probes_silent = address_.file.empty() || silence >= lease_ + absl::Seconds(1);
  }
  const absl::StatusOr<std::vector<std::string>> targets = FindTargets(fs_, address_);
  if (IsEndOfRun(targets.status())) return ChiefReplaced(targets.status().message());
  if (!targets.ok()) return absl::OkStatus();
  for (const std::string& target : *targets) {
    if (target != silent || (targets->size() == 1 && probes_silent)) {
      RETURN_IF_ERROR(LookForSuccessor(target, heartbeat.generation()));
    }
  }
  return absl::OkStatus();
}

absl::Status LocatedChiefClient::LookForSuccessor(const std::string& target, int64_t generation) {
  std::shared_ptr<ChiefClient> client = NewClient(target);
  {
    MutexLock lock(&mutex_);
    if (stopped_) return Stopped();
    candidates_.insert(client);
  }
  const absl::StatusOr<v1::GetRunSpecReply> reply = client->GetRunSpec();
  MutexLock lock(&mutex_);
  candidates_.erase(client);
  if (stopped_) return Stopped();
  if (!reply.ok() || reply->generation() <= generation) return absl::OkStatus();
  clients_[target].swap(client);  // the lock is released before the old client is destroyed
  successor_ = target;
  return ChiefReplaced(absl::StrCat("the chief of generation ", generation, " is silent, and that of generation ",
                                    reply->generation(), " answers at ", target));
}

absl::StatusOr<std::unique_ptr<StepChannel>> LocatedChiefClient::OpenStepChannel(const StepOptions& options,
                                                                                 const v1::ModelSpec& model) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ChiefClient> chief, Found());
  return chief->OpenStepChannel(options, model);
}

void LocatedChiefClient::CancelConnecting() {
  std::vector<std::shared_ptr<ChiefClient>> clients;
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    for (const auto& entry : clients_) clients.push_back(entry.second);
    clients.insert(clients.end(), candidates_.begin(), candidates_.end());
  }
  for (const auto& client : clients) client->CancelConnecting();
}

}  // namespace lockstep
