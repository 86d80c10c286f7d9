#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_KEEPALIVE_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_KEEPALIVE_H_

#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"

namespace lockstep {

// Time that the chief waits for a worker's answer to a ping, and for its system to confirm the bytes of one.
constexpr int kWorkersAnswerMilliseconds = 20000;

// The two ends of one policy: each end asks the other for a sign of life, so that a worker notices a cut network within
// about 35 seconds and the chief within 25, and each end allows what the other asks. An answer may take long: it waits
// behind the data that a slow link has not carried yet.
void SetClientKeepalive(grpc::ChannelArguments* arguments);
void SetServerKeepalive(grpc::ServerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_KEEPALIVE_H_
