#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CHANNEL_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "lockstep/common/transport/connection/credentials.h"

namespace lockstep {

// Returns `target` ("host:port", a unix socket) with the scheme that gRPC needs. Without a scheme, gRPC would mistake a
// host named "dns", "ipv4" or "xds" for a scheme.
std::string ChannelUri(const std::string& target);

// Returns a channel to `target` ("host:port" or "unix:/path") with Lockstep's settings: no limit on message sizes,
// quick reconnection, keepalive (keepalive.h). Each address of the host has `connect_limit` to accept a connection.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& target, const Credentials& credentials = {},
                                          absl::Duration connect_limit = absl::Milliseconds(500));

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CHANNEL_H_
