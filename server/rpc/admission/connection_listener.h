#ifndef LOCKSTEP_SERVER_RPC_ADMISSION_CONNECTION_LISTENER_H_
#define LOCKSTEP_SERVER_RPC_ADMISSION_CONNECTION_LISTENER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep {

// A listener for a server that bounds the number of connections. gRPC itself accepts any number of connections, and
// never accepts another one once the process has run out of descriptors. The kernel assigns the lowest free descriptor,
// so a connection whose descriptor is not below the bound shows that all descriptors below it are taken; it is closed
// immediately. The descriptors above the bound are left for the process's files. A unix socket accepts connections only
// from this process's user and root. Listen binds the addresses, and Start accepts connections. The destructor stops
// accepting and waits until `take` has returned. For use by one thread.
class ConnectionListener {
 public:
  // Receives a non-blocking connection and the socket that accepted it. Called on the listener's thread.
  using Take = std::function<void(int listener, int connection)>;

  // `addresses` are "host:port" (with port 0, any free port), "unix:/path" or "unix-abstract:name". Returns
  // Unavailable, naming the first one that cannot be bound. The path of a unix socket is taken over if its server is
  // gone, and is in use if its server is alive.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Listen(const std::vector<std::string>& addresses);
  ~ConnectionListener();

  // The port of the first "host:port"; 0 if there is none.
  int port() const { return port_; }
  // Starts to accept connections. Must be called once. Only descriptors below `bound` are passed to `take`, which owns
  // them.
  void Start(int bound, Take take, Executor* executor = Executor::Threads());

  // Returns the bound that leaves enough descriptors for files in a process that may have `limit` descriptors.
  static int BoundFor(uint64_t limit);

 private:
  struct UnixSocket {
    std::string path;
    dev_t device;
    ino_t inode;
  };

  ConnectionListener() = default;

  absl::Status Bind(absl::string_view address);
  absl::Status BindUnix(absl::string_view address);
  absl::Status BindTcp(absl::string_view address);
  void Loop();
  // Accepts pending connections of a socket, at most 100. Returns false if the process has run out of descriptors.
  bool AcceptAll(int listener);

  std::vector<int> listeners_;
  std::vector<UnixSocket> unix_sockets_;  // removed at the end
  int port_ = 0;
  int stop_ = -1;  // readable when the thread must end
  int bound_ = 0;
  Take take_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_CONNECTION_LISTENER_H_
