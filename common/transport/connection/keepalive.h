#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_KEEPALIVE_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_KEEPALIVE_H_

#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"

namespace lockstep {

// Time that the chief waits for a worker's answer to a ping, and for the worker's system to acknowledge sent bytes.
constexpr int kWorkersAnswerMilliseconds = 20000;

// The two ends of one policy. Each end pings the other, so that a worker notices a cut network within about 35 seconds
// and the chief within 25. Each end allows the other's pings. An answer may take long, because it waits behind data
// that a slow link has not carried yet.
void SetClientKeepalive(grpc::ChannelArguments* arguments);
void SetServerKeepalive(grpc::ServerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_KEEPALIVE_H_
