#ifndef LOCKSTEP_COMMON_TRANSPORT_GRPC_CHIEF_CLIENT_H_
#define LOCKSTEP_COMMON_TRANSPORT_GRPC_CHIEF_CLIENT_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/transport/connection/credentials.h"

namespace lockstep {

struct GrpcClientOptions {
  // The deadline of each unary call; the Step stream has none.
  absl::Duration call_timeout = absl::Seconds(60);
  // Time that GetRunSpec and GetStatus may initially take to reach a chief that is not connected (ChiefConnection).
  absl::Duration connect_timeout = absl::Seconds(2);
  // Time without progress after which Leave gives up closing a Step stream in an orderly way.
  absl::Duration leave_limit = absl::Seconds(10);
  // Called once per silence_period while a heartbeat has no reply. May be null.
  ChiefClient::OnSilence on_silence;
  absl::Duration silence_period = ChiefClient::kSilencePeriod;
  Credentials credentials;
};

// Returns a client of the chief at `target`, in gRPC's syntax: "host:port" or "unix:/path". Connects on the first call.
std::unique_ptr<ChiefClient> NewGrpcChiefClient(const std::string& target, const GrpcClientOptions& options = {});

// Returns OK if the gRPC health service at `target` reports SERVING for the whole server; Unavailable if nothing
// answers.
absl::Status CheckHealth(const std::string& target, absl::Duration timeout, const Credentials& credentials = {});

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_GRPC_CHIEF_CLIENT_H_
