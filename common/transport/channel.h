#ifndef LOCKSTEP_COMMON_TRANSPORT_CHANNEL_H_
#define LOCKSTEP_COMMON_TRANSPORT_CHANNEL_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "lockstep/common/transport/credentials.h"

namespace lockstep {

// A channel to `target` ("host:port" or "unix:/path") with Lockstep's settings: no limit on message
// sizes, quick reconnection, keepalive so that a cut network is noticed within about ten seconds.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& target, const Credentials& credentials = {});

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CHANNEL_H_
