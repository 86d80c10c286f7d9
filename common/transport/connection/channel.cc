#include "lockstep/common/transport/connection/channel.h"

#include <arpa/inet.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "lockstep/common/transport/connection/grpc_lifetime.h"
#include "lockstep/common/transport/connection/keepalive.h"

namespace lockstep {
namespace {

// Sizes of the buffers that a connection reads into, if they have a size of their own (InitializeProcess).
constexpr int kLeastReadBytes = 64 << 10, kMostReadBytes = 256 << 10;

bool IsNumeric(int family, absl::string_view host) {
  in6_addr address;  // the longer of the two kinds
  return inet_pton(family, std::string(host).c_str(), &address) == 1;
}

}  // namespace

std::string ChannelUri(const std::string& target) {
  if (absl::StartsWith(target, "unix:") || absl::StartsWith(target, "unix-abstract:")) return target;
  const absl::string_view host = absl::string_view(target).substr(0, target.rfind(':'));
  if (IsNumeric(AF_INET, host)) return absl::StrCat("ipv4:", target);
  absl::string_view inside = host;
  if (absl::ConsumePrefix(&inside, "[") && absl::ConsumeSuffix(&inside, "]")) {
    // A link-local address may have a zone, as in "fe80::1%eth0". A URI allows neither the percent sign nor the
    // brackets.
    const auto zone = inside.find('%');
    if (IsNumeric(AF_INET6, inside.substr(0, zone))) {
      return absl::StrCat("ipv6:%5B", absl::StrReplaceAll(inside, {{"%", "%25"}}), "%5D",
                          absl::string_view(target).substr(host.size()));
    }
  }
  return absl::StrCat("dns:///", target);
}

std::shared_ptr<grpc::Channel> NewChannel(const std::string& target, const Credentials& credentials,
                                          absl::Duration connect_limit) {
  KeepGrpc();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // Despite its name, the argument sets the minimum time of an attempt to connect.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(absl::ToInt64Milliseconds(connect_limit)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // With the default of 30 s, it would take that long to find a chief that comes back at a different address.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 500);
  SetClientKeepalive(&arguments);
  arguments.SetInt(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, kLeastReadBytes);
  arguments.SetInt(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMostReadBytes);
  // Workers in one process must not share a connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A proxy set in the environment is not meant for the cluster.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // The chief refuses compressed messages and sends none.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);  // nothing serves it
  return grpc::CreateCustomChannel(ChannelUri(target), credentials.ForClient(target), arguments);
}

}  // namespace lockstep
