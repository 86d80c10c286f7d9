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

// Listens for a server and bounds its connections: gRPC takes any number, and never accepts again once the process has
// had no descriptor left for one. The kernel gives out the lowest free descriptor, so a connection whose descriptor is
// not below a bound shows that all below are taken; it is closed immediately. The descriptors above the bound serve the
// process's files. A unix socket takes connections of this process's user and root alone. Life: Listen binds, Start
// accepts; the destructor stops and waits for `take`. For one thread.
class ConnectionListener {
 public:
  // Receives a connection, which is non-blocking, and the socket that accepted it. Called on the listener's thread.
  using Take = std::function<void(int listener, int connection)>;

  // `addresses`: "host:port" (port 0: any), "unix:/path", "unix-abstract:name". Unavailable names the first that cannot
  // be bound. The path of a server that is gone is taken over; the path of a live server is in use.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Listen(const std::vector<std::string>& addresses);
  ~ConnectionListener();

  // The port of the first "host:port"; 0 when there is none.
  int port() const { return port_; }
  // Must be called once. Only descriptors below `bound` are given to `take`, which owns them.
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
  // Accepts all pending connections of a socket. Returns false if the process has no descriptor for one.
  bool AcceptAll(int listener);

  std::vector<int> listeners_;
  std::vector<UnixSocket> unix_sockets_;  // removed at the end
  int port_ = 0;
  int stop_ = -1;  // readable when the thread has to end
  int bound_ = 0;
  Take take_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_CONNECTION_LISTENER_H_
