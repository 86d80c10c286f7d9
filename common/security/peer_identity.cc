#include "lockstep/common/security/peer_identity.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

constexpr absl::string_view kScheme = "spiffe://";
// The trust domain of the certificates that `lockstep certs` issues.
constexpr absl::string_view kDomain = "lockstep";

constexpr std::pair<PeerRole, absl::string_view> kIssued[] = {
    {PeerRole::kChief, "chief"},   {PeerRole::kWorker, "worker"},     {PeerRole::kViewer, "viewer"},
    {PeerRole::kReader, "reader"}, {PeerRole::kOperator, "operator"},
};

}  // namespace

absl::string_view PeerRoleName(PeerRole role) {
  for (const auto& issued : kIssued) {
    if (issued.first == role) return issued.second;
  }
  return role == PeerRole::kLocal ? "local" : "anonymous";
}

absl::optional<PeerRole> ParsePeerRole(absl::string_view name) {
  for (const auto& issued : kIssued) {
    if (issued.second == name) return issued.first;
  }
  return absl::nullopt;
}

std::vector<std::string> IssuedRoleNames() {
  std::vector<std::string> names;
  for (const auto& issued : kIssued) names.emplace_back(issued.second);
  return names;
}

absl::optional<PeerIdentity> ParsePeerUri(absl::string_view uri) {
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, kScheme)) return absl::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  // DOMAIN/lockstep/RUN/ROLE[/NAME]
  if (parts.size() < 4 || parts.size() > 5 || parts[1] != "lockstep") return absl::nullopt;
  if (!std::all_of(parts.begin(), parts.end(), IsPeerName)) return absl::nullopt;
  const absl::optional<PeerRole> role = ParsePeerRole(parts[3]);
  if (!role) return absl::nullopt;
  PeerIdentity identity;
  identity.uri = std::string(uri);
  identity.run = absl::StrCat(kScheme, parts[0], "/lockstep/", parts[2]);
  identity.role = *role;
  return identity;
}

std::string PeerUri(absl::string_view run, PeerRole role, absl::string_view name) {
  return absl::StrCat(kScheme, kDomain, "/lockstep/", run, "/", PeerRoleName(role), name.empty() ? "" : "/", name);
}

bool IsPeerName(absl::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace lockstep
