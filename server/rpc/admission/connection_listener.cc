#include "lockstep/server/rpc/admission/connection_listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/transport/connection/keepalive.h"
#include "lockstep/server/rpc/admission/listen_address.h"

namespace lockstep {
namespace {

// Maximum numbers of descriptors for connections and for files. A chief could not serve more workers anyway, and a
// flood of 20,000 connections breaks gRPC 1.51.
constexpr uint64_t kMostDescriptors = 4096;
constexpr uint64_t kMostForFiles = 256;
// Time between two attempts to accept a connection when no descriptor is free, or to lock a folder.
constexpr int kRetryMilliseconds = 50;
constexpr int kLockAttempts = 40;

void SetOption(int socket, int level, int option, int value) {
  PLOG_IF(WARNING, setsockopt(socket, level, option, &value, sizeof(value)) != 0) << "setsockopt " << option;
}

// Returns a socket that listens at `address`, or -1 with errno set. Connections inherit its options.
int ListenAt(const sockaddr* address, socklen_t length) {
  const int listener = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return -1;
  if (address->sa_family != AF_UNIX) {
    SetOption(listener, SOL_SOCKET, SO_REUSEADDR, 1);
    SetOption(listener, IPPROTO_TCP, TCP_NODELAY, 1);
    // Disconnects a peer that does not acknowledge data for as long as it may take to answer a ping. gRPC sets this
    // option only on its own sockets.
    SetOption(listener, IPPROTO_TCP, TCP_USER_TIMEOUT, kWorkersAnswerMilliseconds);
  }
  if (address->sa_family == AF_INET6) SetOption(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(listener, address, length) == 0 && listen(listener, SOMAXCONN) == 0) return listener;
  const int error = errno;
  close(listener);
  errno = error;
  return -1;
}

int ListenAt(const addrinfo& info, int port) {
  sockaddr_storage address = {};
  std::memcpy(&address, info.ai_addr, info.ai_addrlen);
  if (info.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&address)->sin6_port = htons(static_cast<uint16_t>(port));
    return ListenAt(reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in6));
  }
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address);
  v4->sin_port = htons(static_cast<uint16_t>(port));
  if (v4->sin_addr.s_addr == htonl(INADDR_ANY)) {
    // Listen on all addresses of both families, as gRPC does.
    sockaddr_in6 any = {};
    any.sin6_family = AF_INET6;
    any.sin6_port = v4->sin_port;
    const int listener = ListenAt(reinterpret_cast<sockaddr*>(&any), sizeof(any));
    if (listener >= 0 || errno == EADDRINUSE) return listener;
  }
  return ListenAt(reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr_in));
}

int PortOf(int listener) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  // The port is at the same offset in both families' addresses.
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// The lock of a socket's folder, which ensures that only one of several servers that find the same old socket replaces
// it. A server holds it briefly when it starts. Any user with read access to the folder can hold it longer, so a server
// stops waiting for it after kLockAttempts.
class FolderLock {
 public:
  explicit FolderLock(std::string path) {
    const size_t end = path.rfind('/');
    path.resize(end == std::string::npos ? 0 : end + 1);
    folder_ = open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; folder_ >= 0 && i < kLockAttempts; ++i) {
      if (flock(folder_, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR)) break;
      poll(nullptr, 0, kRetryMilliseconds);
    }
  }
  ~FolderLock() {
    if (folder_ >= 0) close(folder_);
  }

 private:
  int folder_ = -1;
};

// Removes a socket at which no process listens because its server is gone. Leaves any other socket in place, so that
// the address cannot be bound. Returns false if the two cases cannot be distinguished because the socket belongs to
// another user.
bool RemoveStaleSocket(const sockaddr_un& place, socklen_t length) {
  struct stat file;
  if (stat(place.sun_path, &file) != 0 || !S_ISSOCK(file.st_mode)) return true;
  // Non-blocking, so that this does not wait for a server that is too busy to accept a connection.
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (client < 0) return true;
  const int error = connect(client, reinterpret_cast<const sockaddr*>(&place), length) == 0 ? 0 : errno;
  close(client);
  if (error == ECONNREFUSED) unlink(place.sun_path);
  return error != EACCES && error != EPERM;
}

// Returns true for a TCP connection, and for a connection to a unix socket from this process's user or root.
bool IsOfOwnUser(int connection) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  if (getsockopt(connection, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  if (domain != AF_UNIX) return true;
  ucred peer = {};
  size = sizeof(peer);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

absl::Status CannotListen(absl::string_view address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", why));
}

}  // namespace

int ConnectionListener::BoundFor(uint64_t limit) {
  const uint64_t files = std::min(kMostForFiles, limit / 3);
  return static_cast<int>(std::min(limit - files, kMostDescriptors));
}

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Listen(
    const std::vector<std::string>& addresses) {
  std::unique_ptr<ConnectionListener> listener(new ConnectionListener());
  for (const std::string& address : addresses) RETURN_IF_ERROR(listener->Bind(address));
  listener->stop_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (listener->stop_ < 0) return absl::UnavailableError(absl::StrCat("eventfd: ", std::strerror(errno)));
  return listener;
}

ConnectionListener::~ConnectionListener() {
  if (thread_ != nullptr) {
    const uint64_t one = 1;
    PCHECK(write(stop_, &one, sizeof(one)) == sizeof(one));
    thread_.reset();
  }
  for (const UnixSocket& socket : unix_sockets_) {
    struct stat file;
    // Another server may have replaced the socket file. While this server's socket is open, no other file has its
    // inode.
    const bool is_own =
        stat(socket.path.c_str(), &file) == 0 && file.st_dev == socket.device && file.st_ino == socket.inode;
    if (is_own) unlink(socket.path.c_str());
  }
  for (const int listener : listeners_) close(listener);
  if (stop_ >= 0) close(stop_);
}

absl::Status ConnectionListener::Bind(absl::string_view address) {
  return IsUnixAddress(address) ? BindUnix(address) : BindTcp(address);
}

absl::Status ConnectionListener::BindUnix(absl::string_view address) {
  absl::string_view name = address;
  const bool is_abstract = absl::ConsumePrefix(&name, "unix-abstract:");
  if (!is_abstract) {
    absl::ConsumePrefix(&name, "unix:");
    if (absl::StartsWith(name, "//")) name.remove_prefix(2);
  }
  sockaddr_un place = {};
  place.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof(place.sun_path)) {
    return CannotListen(address, absl::StrCat("a name has 1 to ", sizeof(place.sun_path) - 1, " bytes"));
  }
  std::memcpy(place.sun_path + (is_abstract ? 1 : 0), name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  absl::optional<FolderLock> lock;
  bool is_known = true;
  if (!is_abstract) {
    lock.emplace(place.sun_path);
    is_known = RemoveStaleSocket(place, length);
  }
  const int listener = ListenAt(reinterpret_cast<const sockaddr*>(&place), length);
  if (listener < 0) {
    const int error = errno;
    const char* const more = error != EADDRINUSE ? ""
                             : is_known          ? " (the name is in use)"
                                                 : " (it belongs to another user: remove it if no process uses it)";
    return CannotListen(address, absl::StrCat(std::strerror(error), more));
  }
  listeners_.push_back(listener);
  struct stat file;
  if (!is_abstract && stat(place.sun_path, &file) == 0) {
    unix_sockets_.push_back({std::string(name), file.st_dev, file.st_ino});
  }
  return absl::OkStatus();
}

absl::Status ConnectionListener::BindTcp(absl::string_view address) {
  const absl::StatusOr<ListenAddress> parsed = ParseListenAddress(address);
  if (!parsed.ok()) return CannotListen(address, parsed.status().message());
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(parsed->host.c_str(), parsed->port.c_str(), &hints, &found);
  if (failed != 0) return CannotListen(address, gai_strerror(failed));
  const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
  // A name may also have addresses of other machines, which cannot be bound. All of this machine's addresses get the
  // same port.
  int port = ntohs(reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_port);
  size_t bound = 0;
  int error = 0;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    const int listener = ListenAt(*info, port);
    if (listener < 0) {
      error = errno;
      continue;
    }
    ++bound;
    listeners_.push_back(listener);
    port = PortOf(listener);
  }
  if (bound == 0) {
    return CannotListen(address,
                        absl::StrCat(std::strerror(error), error == EADDRINUSE ? " (the port is in use)" : ""));
  }
  if (port_ == 0) port_ = port;
  return absl::OkStatus();
}

void ConnectionListener::Start(int bound, Take take, Executor* executor) {
  bound_ = bound;
  take_ = std::move(take);
  thread_ = executor->Start("connections", [this] { Loop(); });
}

void ConnectionListener::Loop() {
  std::vector<pollfd> sockets = {{stop_, POLLIN, 0}};
  for (const int listener : listeners_) sockets.push_back({listener, POLLIN, 0});
  while (true) {
    if (poll(sockets.data(), sockets.size(), -1) < 0 && errno != EINTR) PLOG(FATAL) << "poll";
    if (sockets[0].revents != 0) return;
    bool accepted = true;
    for (size_t i = 1; i < sockets.size(); ++i) {
      if (sockets[i].revents != 0) accepted &= AcceptAll(sockets[i].fd);
    }
    if (!accepted) poll(sockets.data(), 1, kRetryMilliseconds);
  }
}

bool ConnectionListener::AcceptAll(int listener) {
  // Accepts at most 100 connections before it is the next socket's turn.
  for (int i = 0; i < 100; ++i) {
    const int connection = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection < 0) {
      if (errno == EAGAIN) return true;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return false;
      continue;  // this connection broke
    }
    if (!IsOfOwnUser(connection)) {
      close(connection);
      LOG_EVERY_N(WARNING, 1000) << "chief: " << google::COUNTER
                                 << " connections of other users to its unix socket closed";
      continue;
    }
    if (connection >= bound_) {
      close(connection);
      LOG_EVERY_N(WARNING, 1000) << "chief: " << google::COUNTER << " connections closed: " << bound_
                                 << " descriptors are taken (ulimit -n)";
      continue;
    }
    take_(listener, connection);
  }
  return true;
}

}  // namespace lockstep
