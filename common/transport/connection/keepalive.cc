#include "lockstep/common/transport/connection/keepalive.h"

namespace lockstep {
namespace {

// Several seconds, because a ping that is due while a connection is still being made can break gRPC 1.51's first write.
constexpr int kPingMilliseconds = 5000;
// A worker's pings, and its answers to the chief's pings, wait behind about 1 MiB of the gradient that it is sending,
// which takes 11 s at 800 kbit/s. A worker waits longer than the chief, because its own link is more often the slow
// one, and because the chief must find dead peers that hold its memory (kWorkersAnswerMilliseconds).
constexpr int kChiefsAnswerMilliseconds = 30000;
// A client that pings more often than this is disconnected. Must be less than kPingMilliseconds, because pings may
// jitter.
constexpr int kShortestPingMilliseconds = 1000;

}  // namespace

void SetClientKeepalive(grpc::ChannelArguments* arguments) {
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMilliseconds);
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kChiefsAnswerMilliseconds);
  arguments->SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

void SetServerKeepalive(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMilliseconds);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kWorkersAnswerMilliseconds);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Also pings connections without calls, so that a silent peer's connection is closed.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kShortestPingMilliseconds);
}

}  // namespace lockstep
