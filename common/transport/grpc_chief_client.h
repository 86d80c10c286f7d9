#ifndef LOCKSTEP_COMMON_TRANSPORT_GRPC_CHIEF_CLIENT_H_
#define LOCKSTEP_COMMON_TRANSPORT_GRPC_CHIEF_CLIENT_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/client/chief_client.h"

namespace lockstep {

struct GrpcClientOptions {
  // Of each unary call; the Step stream has none.
  absl::Duration call_timeout = absl::Seconds(60);
  // Of GetRun, which waits for a connection.
  absl::Duration connect_timeout = absl::Seconds(1);
  // A goodbye on the Step stream in which nothing moves for so long is given up.
  absl::Duration leave_limit = absl::Seconds(10);
};

// The chief at `target`, as gRPC spells it: "host:port" or "unix:/path". Connects at the first call.
std::unique_ptr<ChiefClient> NewGrpcChiefClient(const std::string& target, const GrpcClientOptions& options = {});

// Whether the gRPC health service at `target` says SERVING for the whole server. Unavailable when nobody answers.
absl::Status CheckHealth(const std::string& target, absl::Duration timeout);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_GRPC_CHIEF_CLIENT_H_
