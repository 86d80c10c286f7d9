#include "lockstep/common/client/located_chief_client.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/address_file.h"

namespace lockstep {
namespace {

// Returns true if the error may come from an address without a chief, so the next target should be tried.
bool IsNoAnswer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsUnknown(status) ||
         absl::IsInternal(status) || absl::IsUnimplemented(status);
}

}  // namespace

LocatedChiefClient::LocatedChiefClient(FileSystem* fs, MasterAddress address, Factory factory)
    : fs_(fs), address_(std::move(address)), factory_(std::move(factory)) {}

absl::StatusOr<std::shared_ptr<ChiefClient>> LocatedChiefClient::ClientOf(const std::string& target) {
  const auto stopped = [] { return absl::CancelledError("the client was stopped"); };
  {
    MutexLock lock(&mutex_);
    if (stopped_) return stopped();
    const auto it = clients_.find(target);
    if (it != clients_.end()) return it->second;
  }
  std::shared_ptr<ChiefClient> made = factory_(target);
  MutexLock lock(&mutex_);
  if (stopped_) return stopped();
  return clients_.try_emplace(target, std::move(made)).first->second;  // another thread may have been faster
}

absl::StatusOr<std::shared_ptr<ChiefClient>> LocatedChiefClient::Found() {
  MutexLock lock(&mutex_);
  if (found_ == nullptr) return absl::UnavailableError("no chief was found yet");
  return found_;
}

absl::StatusOr<std::shared_ptr<ChiefClient>> LocatedChiefClient::Search(const Call& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> targets, FindTargets(fs_, address_));
  std::vector<std::string> failures;
  for (const std::string& target : targets) {
    ASSIGN_OR_RETURN(std::shared_ptr<ChiefClient> client, ClientOf(target));
    const absl::Status status = call(client.get());
    if (status.ok()) return client;
    if (!IsNoAnswer(status)) return status;
    failures.push_back(absl::StrCat(target, ": ", status.message()));
  }
  return absl::UnavailableError(absl::StrJoin(failures, "; "));
}

absl::StatusOr<v1::GetRunSpecReply> LocatedChiefClient::GetRunSpec() {
  absl::StatusOr<v1::GetRunSpecReply> reply;
  ASSIGN_OR_RETURN(std::shared_ptr<ChiefClient> found, Search([&reply](ChiefClient* client) {
                     reply = client->GetRunSpec();
                     return reply.status();
                   }));
  MutexLock lock(&mutex_);
  found_ = std::move(found);
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
  ASSIGN_OR_RETURN(chief, Search([&](ChiefClient* client) {
                     reply = client->ReadVariables(request);
                     return reply.status();
                   }));
  MutexLock lock(&mutex_);
  read_from_ = std::move(chief);
  return reply;
}

absl::StatusOr<v1::OpenSessionReply> LocatedChiefClient::OpenSession(const v1::OpenSessionRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ChiefClient> chief, Found());
  return chief->OpenSession(request);
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
  }
  for (const auto& client : clients) client->CancelConnecting();
}

}  // namespace lockstep
