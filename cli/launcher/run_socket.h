#ifndef LOCKSTEP_CLI_LAUNCHER_RUN_SOCKET_H_
#define LOCKSTEP_CLI_LAUNCHER_RUN_SOCKET_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

// The name of a unix socket for one run's processes, in a directory that only this user (and root) can enter, so that
// the kernel refuses all other users. An abstract socket would accept any process on the machine. The chief creates the
// socket, and the destructor removes it. The logdir's next run reuses a socket left after kill -9.
class RunSocket {
 public:
  // Chooses the first of `places` that works: "<place>/lockstep-<user>/<number of the logdir>.sock". Creates the
  // directory if needed. `logdir` must exist. FailedPrecondition says why no place works: another user could replace or
  // enter the directory, or the path would be too long for a socket.
  static absl::StatusOr<std::unique_ptr<RunSocket>> Create(const std::vector<std::string>& places,
                                                           const std::string& logdir);
  // Returns XDG_RUNTIME_DIR, if set, and /tmp.
  static std::vector<std::string> UsualPlaces();
  ~RunSocket();

  RunSocket(const RunSocket&) = delete;
  RunSocket& operator=(const RunSocket&) = delete;

  const std::string& path() const { return path_; }
  // Returns the address in gRPC's form, "unix:<path>".
  std::string address() const { return "unix:" + path_; }

 private:
  explicit RunSocket(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_RUN_SOCKET_H_
