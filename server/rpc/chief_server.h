#ifndef LOCKSTEP_SERVER_RPC_CHIEF_SERVER_H_
#define LOCKSTEP_SERVER_RPC_CHIEF_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/transport/connection/credentials.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/rpc/admission/peer_authority.h"

namespace lockstep {

// A gRPC server for a Chief, with a health service, on one completion queue. The queue's few threads also sum gradients
// and apply updates: a frame is processed on the thread that received it (docs/decisions/0001-step-stream.md). The
// destructor shuts the server down. Thread-safe.
class ChiefServer {
 public:
  struct Options {
    // "host:port" (port 0 picks any free port), "unix:/path" or "unix-abstract:name", or several of these, separated by
    // commas.
    std::string address = "127.0.0.1:0";
    int step_threads = 2;
    Executor* executor = Executor::Threads();
    // Time after which a connection that does not speak HTTP/2, or a Step stream that has received no frame, is closed.
    absl::Duration silence_limit = absl::Seconds(10);
    // Time after which a call that names no session is ended if there are too many such calls (UnauthenticatedCalls).
    absl::Duration call_patience = absl::Seconds(1);
    // Credentials for TCP. If they name a directory, it must have been checked with TlsDirectory::Check.
    Credentials credentials;
    // The options for checking peers. Start sets the directory to that of `credentials`, which a token_file requires.
    PeerAuthority::Options peers;
  };

  // `chief` must outlive the server. Errors: Unavailable if an address cannot be bound (the message names it);
  // InvalidArgument if the files of `credentials` or the token file are invalid.
  static absl::StatusOr<std::unique_ptr<ChiefServer>> Start(const Options& options, Chief* chief);
  // Ends all calls and waits for their handlers.
  ~ChiefServer();

  // The address that clients connect to: the first address of the form "host:port", with the port that was bound, or
  // the first address of all if none has this form.
  const std::string& address() const;
  int port() const;
  // Options::address, with the port replaced by the one that was bound.
  const std::string& listening() const;

 private:
  struct Impl;  // gRPC's part
  explicit ChiefServer(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CHIEF_SERVER_H_
