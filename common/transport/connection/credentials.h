#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_H_

#include <memory>
#include <string>

#include "lockstep/common/security/tls_directory.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace lockstep {

// The credentials with which both ends of a connection prove their identity, for clients, servers and probes. A value
// type; the default proves nothing and encrypts nothing. With a TlsDirectory, both ends of a TCP connection present the
// certificates in it. Its files are reread every second, and changes apply to later connections. The directory must
// have been checked (TlsDirectory::Check). Unix sockets never use TLS. Thread-safe.
class Credentials {
 public:
  Credentials() : Credentials(std::string()) {}
  // An empty directory means no TLS. A nonempty `token` is sent with each call over TLS.
  explicit Credentials(std::string tls_directory, std::string token = "");

  const TlsDirectory& directory() const;

  // Returns the credentials for a client of the chief at `target` ("host:port" or "unix:/path").
  std::shared_ptr<grpc::ChannelCredentials> ForClient(const std::string& target) const;
  // Returns the credentials for a server over TCP. The server asks each client for a certificate and refuses one that
  // it does not trust; a client without a certificate is anonymous.
  std::shared_ptr<grpc::ServerCredentials> ForServer() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_H_
