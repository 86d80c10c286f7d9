#ifndef LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PLAIN_CHANNEL_H_
#define LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PLAIN_CHANNEL_H_

#include <memory>
#include <string>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace lockstep {
namespace benchmark {

// Returns a gRPC channel without a limit on message sizes. Keepalive is off, because no thread polls between turns.
inline std::shared_ptr<grpc::Channel> PlainChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace benchmark
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_BENCHMARK_EXCHANGE_PLAIN_CHANNEL_H_
