#include "lockstep/common/transport/channel.h"

#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "lockstep/common/transport/grpc_lifetime.h"
#include "lockstep/common/transport/keepalive.h"

namespace lockstep {

std::shared_ptr<grpc::Channel> NewChannel(const std::string& target, const Credentials& credentials) {
  KeepGrpc();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  SetClientKeepalive(&arguments);
  // Workers in one process must not share a connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A proxy of the environment is not meant for the cluster.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(target, credentials.ForClient(), arguments);
}

}  // namespace lockstep
