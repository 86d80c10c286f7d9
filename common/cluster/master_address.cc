#include "common/cluster/master_address.h"

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

// A name that is no file, known to the machine alone.
constexpr absl::string_view kAbstract = "unix-abstract:";

absl::Status Wrong(absl::string_view part, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("master address \"", part, "\" ", reason,
                                                 "; an address is like grpc://127.0.0.1:2222 or unix:/run/chief.sock"));
}

absl::StatusOr<std::string> ParseTarget(absl::string_view part) {
  if (absl::StartsWith(part, "unix:")) {
    absl::string_view path = absl::StripPrefix(part, "unix:");
    if (absl::StartsWith(path, "//")) path.remove_prefix(2);
    if (path.empty()) return Wrong(part, "names no path");
    return absl::StrCat("unix:", path);
  }
  if (absl::StartsWith(part, kAbstract)) {
    if (part.size() == kAbstract.size()) return Wrong(part, "names no socket");
    return std::string(part);
  }
  absl::string_view target = part;
  absl::ConsumePrefix(&target, "grpc://");
  if (absl::StrContains(target, "://")) return Wrong(part, "has a scheme that is neither grpc:// nor unix:");
  absl::ConsumeSuffix(&target, "/");
  const size_t colon = target.rfind(':');
  const bool inside_brackets = colon != absl::string_view::npos && absl::StrContains(target.substr(colon), "]");
  if (colon == absl::string_view::npos || inside_brackets) return Wrong(part, "has no port");
  const absl::string_view host = target.substr(0, colon);
  if (host.empty()) return Wrong(part, "has no host");
  if (absl::StrContains(host, ":") && !(absl::StartsWith(host, "[") && absl::EndsWith(host, "]"))) {
    return Wrong(part, "has an IPv6 host that is not in brackets");
  }
  int32_t port = 0;
  if (!absl::SimpleAtoi(target.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return Wrong(part, absl::StrCat("has the port \"", target.substr(colon + 1), "\", not one of 1 to 65535"));
  }
  return std::string(target);
}

}  // namespace

bool IsUnixAddress(absl::string_view address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, kAbstract);
}

absl::StatusOr<MasterAddress> ParseMasterAddress(absl::string_view master) {
  MasterAddress address;
  if (master.empty()) return address;
  for (absl::string_view part : absl::StrSplit(master, ',')) {
    ASSIGN_OR_RETURN(std::string target, ParseTarget(absl::StripAsciiWhitespace(part)));
    address.targets.push_back(std::move(target));
  }
  return address;
}

}  // namespace lockstep
