#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_H_

#include <memory>

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace lockstep {

// The way in which the two ends of a connection prove their identity. Clients, servers and probes all take theirs from
// here. A value; by default nothing is proved and nothing encrypted. Thread-safe.
class Credentials {
 public:
  std::shared_ptr<grpc::ChannelCredentials> ForClient() const;
  std::shared_ptr<grpc::ServerCredentials> ForServer() const;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_H_
