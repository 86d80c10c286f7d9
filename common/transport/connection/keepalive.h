#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_KEEPALIVE_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_KEEPALIVE_H_

#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"

namespace lockstep {

// Time that the chief waits for a worker to answer a ping, and for the worker's operating system to acknowledge sent
// bytes.
constexpr int kWorkersAnswerMilliseconds = 20000;

// Set up keepalive at the two ends of a connection. Each end pings the other and allows the other's pings, so that a
// worker notices a broken network within about 35 seconds and the chief within 25. An answer may take a long time,
// because it waits behind data that a slow link has not delivered yet.
void SetClientKeepalive(grpc::ChannelArguments* arguments);
void SetServerKeepalive(grpc::ServerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_KEEPALIVE_H_
