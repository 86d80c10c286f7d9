#include "lockstep/server/rpc/chief_methods.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/step/report_parts.h"
#include "lockstep/server/rpc/step/step_call.h"
#include "lockstep/v1/chief.grpc.pb.h"
#include "lockstep/v1/watch.pb.h"
#include "proto/grpc/health.grpc.pb.h"

namespace lockstep {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

std::string ChiefMethod(absl::string_view method) {
  return absl::StrCat("/", v1::ChiefService::service_full_name(), "/", method);
}

// Reports SERVING, because a server that answers is healthy: a chief that does not know its model yet only waits for a
// worker to declare it.
absl::StatusOr<HealthCheckResponse> CheckHealth(const HealthCheckRequest& request) {
  if (!request.service().empty() && request.service() != v1::ChiefService::service_full_name()) {
    return absl::NotFoundError(absl::StrCat("no service ", request.service()));
  }
  HealthCheckResponse reply;
  reply.set_status(HealthCheckResponse::SERVING);
  return reply;
}

bool NeedsNoSession(PeerRole role) { return role == PeerRole::kOperator || role == PeerRole::kChief; }

SessionOpener::Options OpenerOptions(Executor* executor) {
  SessionOpener::Options options;
  options.executor = executor;
  options.max_request_bytes = ChiefMethods::kMaxMessageBytes;
  return options;
}

UnauthenticatedCalls::Options UnauthenticatedCallsOptions(absl::Duration patience) {
  UnauthenticatedCalls::Options options;
  options.most = ChiefMethods::kMaxUnauthenticatedCalls;
  options.patience = patience;
  return options;
}

Watchers::Options WatcherOptions(Chief* chief, PeerAuthority* authority, const CallCounts* ended,
                                 UnauthenticatedCalls* unauthenticated_calls, Executor* executor) {
  Watchers::Options options;
  options.chief = chief;
  options.unauthenticated_calls = unauthenticated_calls;
  options.executor = executor;
  options.watch_peer = [authority](const CallPeer& peer, std::weak_ptr<RevocableCall> call) {
    authority->Watch(peer, std::move(call));
  };
  options.fill_counters = [authority, ended](v1::RunCounters* counters) {
    authority->FillCounters(counters);
    ended->Fill(counters);
  };
  return options;
}

PeriodicTask::Options SweepOptions(Executor* executor) {
  PeriodicTask::Options options;
  options.clock = Clock::Real();
  options.executor = executor;
  options.name = "evict-calls";
  options.period = absl::Milliseconds(250);
  return options;
}

}  // namespace

ChiefMethods::ChiefMethods(Chief* chief, PeerAuthority* authority, const CallCounts* ended,
                           absl::Duration call_patience, Executor* executor)
    : chief_(chief),
      authority_(authority),
      unauthenticated_calls_(UnauthenticatedCallsOptions(call_patience)),
      opener_(OpenerOptions(executor),
              [chief](const v1::OpenSessionRequest& request, const std::string& peer) {
                return chief->sessions()->OpenSession(request, peer);
              }),
      canaries_(/*threads=*/1, executor),
      watchers_(WatcherOptions(chief, authority, ended, &unauthenticated_calls_, executor)),
      sweeps_(SweepOptions(executor), [this] {
        unauthenticated_calls_.Sweep();
        authority_->Sweep();
      }) {
  // Most methods only read the chief's state. ReadVariables also copies 1 MiB, AddSummary parses as much, and
  // SetInitialValues hashes as much.
  unary_[ChiefMethod("GetRunSpec")] = Serve<v1::GetRunSpecRequest>(chief->sessions(), &Sessions::GetRunSpec);
  unary_[ChiefMethod("SetInitialValues")] =
      Serve(chief->sessions(), &Sessions::SetInitialValues, kMaxInitialValuesBytes);
  unary_[ChiefMethod("GetCanaryValues")] =
      OnPool(Serve(chief->sessions(), &Sessions::GetCanaryValues), &canaries_, kMaxCanaryCalls);
  unary_[ChiefMethod("Heartbeat")] = Serve(chief->sessions(), &Sessions::Heartbeat);
  unary_[ChiefMethod("GetStatus")] = Serve<v1::GetStatusRequest>(chief, &Chief::GetStatus);
  unary_[ChiefMethod("RequestEnd")] = ServePeer<v1::RequestEndRequest, v1::RequestEndReply>(
      [chief](const v1::RequestEndRequest& request, const CallPeer& peer) {
        return NeedsNoSession(peer.role) ? chief->sessions()->RequestFinishBy(peer.name, request)
                                         : chief->sessions()->RequestFinish(request, peer.name);
      });
  unary_[ChiefMethod("AddSummary")] = Serve(chief->sessions(), &Sessions::AddSummary, kMaxSummaryRequestBytes);
  unary_[ChiefMethod("ReadVariables")] = Serve(chief, &Chief::ReadVariables, kMaxReadBytes);
  unary_[ChiefMethod("ReadVariables")].long_reply = true;
  unary_[absl::StrCat("/", Health::service_full_name(), "/Check")] =
      Serve<HealthCheckRequest, HealthCheckResponse>(CheckHealth);
  unary_[ChiefMethod("OpenSession")] = {kMaxMessageBytes,
                                        [this](std::string request, const CallPeer& peer, UnaryCall::Done done) {
                                          opener_.Answer(std::move(request), peer.name, std::move(done));
                                        },
                                        /*lasting=*/true};
}

std::map<std::string, CallAcceptor::Handler> ChiefMethods::Handlers(grpc::ServerCompletionQueue* queue,
                                                                    absl::Duration silence_limit, Executor* executor) {
  std::map<std::string, CallAcceptor::Handler> handlers;
  for (const auto& entry : unary_) {
    handlers[entry.first] = [this, method = &entry.second](std::unique_ptr<IncomingCall> call) {
      UnaryCall::Start(std::move(call), method, &unauthenticated_calls_);
    };
  }
  StepCall::Options step;
  step.queue = queue;
  step.chief = chief_;
  step.unauthenticated_calls = &unauthenticated_calls_;
  step.silence_limit = silence_limit;
  step.max_message_bytes = kMaxMessageBytes;
  step.executor = executor;
  step.watch = [this](const CallPeer& peer, std::weak_ptr<RevocableCall> call) {
    authority_->Watch(peer, std::move(call));
  };
  handlers[ChiefMethod("Step")] = [step](std::unique_ptr<IncomingCall> call) {
    StepCall::Start(step, std::move(call));
  };
  handlers[ChiefMethod("WatchRun")] = [this](std::unique_ptr<IncomingCall> call) { watchers_.Start(std::move(call)); };
  return handlers;
}

}  // namespace lockstep
