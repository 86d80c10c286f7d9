#include "lockstep/common/cluster/master_address.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// Prefix of an abstract socket name, which is not a file and is known only on this machine.
constexpr absl::string_view kAbstract = "unix-abstract:";
constexpr absl::string_view kFile = "file:";

absl::Status Wrong(absl::string_view part, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("master address \"", absl::Utf8SafeCHexEscape(part), "\" ", reason,
                                                 "; an address is like grpc://127.0.0.1:2222 or unix:/run/chief.sock"));
}

// Returns true if a part contains control characters, which no address contains. In a path, they would be a typo that
// messages do not show.
bool HasControlBytes(absl::string_view part) {
  return std::any_of(part.begin(), part.end(),
                     [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

// Returns the path after "unix:" or "file:" without the "//" that it has if it is written as a URL.
absl::string_view PathOf(absl::string_view path) {
  absl::ConsumePrefix(&path, "//");
  return path;
}

absl::StatusOr<std::string> ParseHostAndPort(absl::string_view part) {
  absl::string_view target = part;
  absl::ConsumePrefix(&target, "grpc://");
  if (absl::StrContains(target, "://")) return Wrong(part, "has a scheme that is neither grpc:// nor unix: nor file:");
  absl::ConsumeSuffix(&target, "/");
  const size_t colon = target.rfind(':');
  const bool inside_brackets = colon != absl::string_view::npos && absl::StrContains(target.substr(colon), "]");
  if (colon == absl::string_view::npos || inside_brackets) return Wrong(part, "has no port");
  const absl::string_view host = target.substr(0, colon);
  if (host.empty() || host == "[]") return Wrong(part, "has no host");
  const bool brackets = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  if (absl::StrContains(host, ":") && !brackets) return Wrong(part, "has an IPv6 host that is not in brackets");
  if (host.find_first_of("/ @?#%\\\"'") != absl::string_view::npos && !brackets) {
    return Wrong(part, absl::StrCat("has the host \"", absl::Utf8SafeCHexEscape(host), "\", which is none"));
  }
  if (IsUnixAddress(target)) {
    return Wrong(part, absl::StrCat("has a host called \"", host,
                                    "\", which stands for a socket; name its number, or the host with its domain"));
  }
  const absl::string_view digits = target.substr(colon + 1);
  int32_t port = 0;
  const bool is_number = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
  if (!is_number || !absl::SimpleAtoi(digits, &port) || port < 1 || port > 65535) {
    return Wrong(part, absl::StrCat("has the port \"", absl::Utf8SafeCHexEscape(digits), "\", not one of 1 to 65535"));
  }
  return std::string(target);
}

absl::StatusOr<std::string> ParseTarget(absl::string_view part) {
  if (part.empty()) return Wrong(part, "has no port");
  if (HasControlBytes(part)) return Wrong(part, "has a byte that is no character");
  if (absl::StartsWith(part, kFile)) return Wrong(part, "must stand alone");
  if (absl::StartsWith(part, "unix:")) {
    const absl::string_view path = PathOf(absl::StripPrefix(part, "unix:"));
    if (path.empty()) return Wrong(part, "names no path");
    return absl::StrCat("unix:", path);
  }
  if (absl::StartsWith(part, kAbstract)) {
    if (part.size() == kAbstract.size()) return Wrong(part, "names no socket");
    return std::string(part);
  }
  return ParseHostAndPort(part);
}

}  // namespace

bool IsUnixAddress(absl::string_view address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, kAbstract);
}

std::string AddressOfPeer(absl::string_view peer) {
  if (IsUnixAddress(peer)) return "unix socket";
  if (!absl::ConsumePrefix(&peer, "ipv4:")) absl::ConsumePrefix(&peer, "ipv6:");
  return absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
}

absl::StatusOr<MasterAddress> ParseMasterAddress(absl::string_view master) {
  MasterAddress address;
  if (master.empty()) return address;
  // Look for a file first, because its path may contain commas.
  if (absl::StartsWith(master, kFile)) {
    const absl::string_view path = PathOf(absl::StripPrefix(master, kFile));
    if (path.empty()) return Wrong(master, "names no path");
    if (HasControlBytes(path)) return Wrong(master, "has a byte that is no character");
    address.file = std::string(path);
    return address;
  }
  for (absl::string_view part : absl::StrSplit(master, ',')) {
    ASSIGN_OR_RETURN(std::string target, ParseTarget(absl::StripAsciiWhitespace(part)));
    address.targets.push_back(std::move(target));
  }
  return address;
}

}  // namespace lockstep
