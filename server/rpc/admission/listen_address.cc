#include "lockstep/server/rpc/admission/listen_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/master_address.h"

namespace lockstep {
namespace {

constexpr int kMaxPort = 65535;

absl::Status Wrong(absl::string_view address, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("nobody can listen on \"", address, "\": ", why));
}

absl::Status CheckUnix(absl::string_view address) {
  absl::string_view name = address;
  const bool is_abstract = absl::ConsumePrefix(&name, "unix-abstract:");
  if (!is_abstract) absl::ConsumePrefix(&name, "unix:");
  if (name.empty() || name.size() + 1 > sizeof(sockaddr_un::sun_path)) {
    return Wrong(address, absl::StrCat("a name has 1 to ", sizeof(sockaddr_un::sun_path) - 1, " bytes"));
  }
  const size_t slash = name.rfind('/');
  if (is_abstract || slash == absl::string_view::npos || slash == 0) return absl::OkStatus();
  const std::string directory(name.substr(0, slash));
  struct stat file;
  if (stat(directory.c_str(), &file) == 0 && S_ISDIR(file.st_mode)) return absl::OkStatus();
  return Wrong(address, absl::StrCat("there is no directory ", directory));
}

// Returns true if this is, or may be, an address of this machine. Binds port 0, which is free at any address.
bool MayBind(const addrinfo& info) {
  const int socket = ::socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return true;
  const bool bound = bind(socket, info.ai_addr, info.ai_addrlen) == 0 || errno != EADDRNOTAVAIL;
  close(socket);
  return bound;
}

absl::Status CheckHost(absl::string_view address, const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), "0", &hints, &found);
  // The name server may answer next time.
  if (failed == EAI_AGAIN || failed == EAI_SYSTEM || failed == EAI_MEMORY) return absl::OkStatus();
  if (failed != 0) return Wrong(address, absl::StrCat("the host ", host, " is unknown"));
  const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (MayBind(*info)) return absl::OkStatus();
  }
  return Wrong(address, absl::StrCat(host, " is no address of this machine"));
}

absl::Status CheckTcp(absl::string_view address) {
  ASSIGN_OR_RETURN(const ListenAddress parsed, ParseListenAddress(address));
  int port = 0;
  if (!absl::SimpleAtoi(parsed.port, &port) || port < 0 || port > kMaxPort) {
    return Wrong(address, absl::StrCat("the port is ", parsed.port, ", must be 0 to ", kMaxPort, "; 0 takes any"));
  }
  return CheckHost(address, parsed.host);
}

bool IsLoopback(const addrinfo& info) {
  if (info.ai_family == AF_INET) {
    const in_addr address = reinterpret_cast<const sockaddr_in*>(info.ai_addr)->sin_addr;
    return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return info.ai_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(info.ai_addr)->sin6_addr);
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view address) {
  absl::string_view target = address;
  for (const absl::string_view scheme : {"dns:///", "dns:", "ipv4:", "ipv6:"}) {
    if (absl::ConsumePrefix(&target, scheme)) break;
  }
  const size_t colon = target.rfind(':');
  if (colon == absl::string_view::npos) {
    return Wrong(address, "it names no port; it must be HOST:PORT, such as 127.0.0.1:2222, or unix:/path");
  }
  ListenAddress parsed;
  parsed.host = std::string(target.substr(0, colon));
  parsed.port = std::string(target.substr(colon + 1));
  if (parsed.host.size() > 2 && parsed.host.front() == '[' && parsed.host.back() == ']') {
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  }
  if (parsed.host.empty()) parsed.host = "0.0.0.0";
  return parsed;
}

absl::Status CheckListenAddresses(absl::string_view addresses) {
  for (const absl::string_view address : absl::StrSplit(addresses, ',')) {
    RETURN_IF_ERROR(IsUnixAddress(address) ? CheckUnix(address) : CheckTcp(address));
  }
  return absl::OkStatus();
}

bool IsLocalAddress(absl::string_view address) {
  if (IsUnixAddress(address)) return true;
  const absl::StatusOr<ListenAddress> parsed = ParseListenAddress(address);
  if (!parsed.ok()) return false;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(parsed->host.c_str(), nullptr, &hints, &found) != 0) return false;
  const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (!IsLoopback(*info)) return false;
  }
  return true;
}

}  // namespace lockstep
