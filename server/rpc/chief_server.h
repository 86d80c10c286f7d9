#ifndef LOCKSTEP_SERVER_RPC_CHIEF_SERVER_H_
#define LOCKSTEP_SERVER_RPC_CHIEF_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/transport/connection/credentials.h"
#include "lockstep/server/chief/chief.h"

namespace lockstep {

// Serves a Chief over gRPC, with a health service, on one completion queue. The queue's few threads also sum gradients
// and apply updates: a frame is processed on the thread that received it (docs/decisions/0001-step-stream.md). The
// destructor shuts down the server. Thread-safe.
class ChiefServer {
 public:
  struct Options {
    // "host:port" (with port 0, any free port), "unix:/path" or "unix-abstract:name"; or several, separated by commas.
    std::string address = "127.0.0.1:0";
    int step_threads = 2;
    Executor* executor = Executor::Threads();
    // Time after which a connection that does not speak HTTP/2 ends, or a Step stream that has received no frame.
    absl::Duration silence_limit = absl::Seconds(10);
    // The credentials for TCP. The directory that they name, if any, must have been checked (TlsDirectory::Check).
    Credentials credentials;
    // Tokens for viewers (common/security/token_file.h). They require `credentials`. If empty, there are none.
    std::string token_file;
  };

  // `chief` must outlive the server. Errors: Unavailable names the address that cannot be bound; InvalidArgument for
  // invalid files of `credentials` or tokens.
  static absl::StatusOr<std::unique_ptr<ChiefServer>> Start(const Options& options, Chief* chief);
  // Ends all calls and waits for their handlers.
  ~ChiefServer();

  // The address that clients connect to: the first "host:port" with the port that was bound or, if there is none, the
  // first address.
  const std::string& address() const;
  int port() const;
  // Options::address with the port that was bound.
  const std::string& listening() const;

 private:
  struct Impl;  // gRPC's part
  explicit ChiefServer(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CHIEF_SERVER_H_
