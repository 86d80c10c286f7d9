#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/security/access_table.h"
#include "lockstep/common/security/certificate_authority.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep certs";
constexpr int64_t kMostDays = 36500;
// Other machines' clocks may be behind this one.
constexpr absl::Duration kEarlier = absl::Hours(1);

struct Flags {
  std::string action;
  std::string directory;
  std::string certificate;
  std::string run = "cluster";
  std::string role;
  std::string out;
  std::string name;
  std::vector<std::string> hosts;
  int64_t days = 0;
};

ValidityPeriod ValidFor(int64_t days) {
  const absl::Time now = Clock::Real()->WallTime();
  return {now - kEarlier, now + days * absl::Hours(24)};
}

absl::Status Init(FileSystem* fs, const Flags& flags, std::ostream& out) {
  RETURN_IF_ERROR(CreateAuthority(fs, flags.directory, flags.run, ValidFor(flags.days > 0 ? flags.days : 3650)));
  out << "made an authority in " << flags.directory << "; ca.key in it issues certificates: keep it there\n"
      << "next: lockstep certs issue " << flags.directory << " --role=chief --out=chief-kit\n";
  return absl::OkStatus();
}

absl::Status Issue(FileSystem* fs, const Flags& flags, std::ostream& out) {
  KitRequest request;
  const absl::optional<PeerRole> role = ParsePeerRole(flags.role);
  if (!role) {
    return absl::InvalidArgumentError(
        absl::StrCat("--role is \"", flags.role, "\", must be one of ", absl::StrJoin(IssuedRoleNames(), ", ")));
  }
  request.role = *role;
  request.name = flags.name;
  for (const std::string& hosts : flags.hosts) {
    for (const absl::string_view host : absl::StrSplit(hosts, ',', absl::SkipEmpty())) {
      request.hosts.emplace_back(host);
    }
  }
  if (!request.hosts.empty() && *role != PeerRole::kChief) {
    return absl::InvalidArgumentError("--hosts is for the role chief, which others connect to");
  }
  request.validity = ValidFor(flags.days > 0 ? flags.days : 365);
  if (flags.out.empty()) return absl::InvalidArgumentError("--out is missing: the folder for the kit");
  RETURN_IF_ERROR(IssueKit(fs, flags.directory, request, flags.out));
  out << "made a kit for the role " << flags.role << " in " << flags.out << ": --tls_dir=" << flags.out << "\n";
  return absl::OkStatus();
}

absl::Status Revoke(FileSystem* fs, const Flags& flags, std::ostream& out) {
  if (flags.certificate.empty()) {
    return absl::InvalidArgumentError("CERTIFICATE is missing: the file to revoke, such as a kit's tls.crt");
  }
  RETURN_IF_ERROR(RevokeCertificate(fs, flags.directory, flags.certificate, Clock::Real()->WallTime()));
  out << "revoked; copy " << flags.directory << "/crl.pem to the folder of the chief's --tls_dir, which reads it "
      << "within seconds\n";
  return absl::OkStatus();
}

absl::Status CarryOut(FileSystem* fs, const Flags& flags, std::ostream& out) {
  if (flags.days < 0 || flags.days > kMostDays) {
    return absl::InvalidArgumentError(absl::StrCat("--days is ", flags.days, ", must be 1 to ", kMostDays));
  }
  if (!flags.certificate.empty() && flags.action != "revoke") {
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument \"", flags.certificate, "\""));
  }
  if (flags.action == "init") return Init(fs, flags, out);
  if (flags.action == "issue") return Issue(fs, flags, out);
  if (flags.action == "revoke") return Revoke(fs, flags, out);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no \"", flags.action, "\"; it must be init, issue or revoke"));
}

}  // namespace

int CertsCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  Flags flags;
  CommandLine command_line(
      kName, "Makes a certificate authority for a run, and a kit of files for each of its processes (--tls_dir).",
      "init makes an authority in DIR; issue makes a kit for a role; revoke makes the chief refuse a certificate.\n"
      "lockstep authz prints what each role may do. Exit codes: 0 done; 1 a file could not be written; 2 wrong "
      "arguments.\n"
      "Example:\n"
      "  lockstep certs init ca\n"
      "  lockstep certs issue ca --role=chief --out=chief-kit\n"
      "  lockstep certs issue ca --role=worker --out=worker-kit");
  command_line.AddArgument("ACTION", "init, issue or revoke", &flags.action);
  command_line.AddArgument("DIR", "the folder of the authority", &flags.directory);
  command_line.AddArgument("CERTIFICATE", "revoke: the certificate, such as a kit's tls.crt", &flags.certificate,
                           CommandLine::kOptional);
  command_line.AddFlag("run", "NAME", "init: the name of the run or cluster, which its kits carry", &flags.run);
  command_line.AddFlag("role", "ROLE", absl::StrCat("issue: ", absl::StrJoin(IssuedRoleNames(), ", ")), &flags.role);
  command_line.AddFlag("out", "KIT", "issue: the folder for the kit", &flags.out);
  command_line.AddFlag(
      "name", "NAME", "issue: distinguishes processes of one role, whose sessions others then cannot use", &flags.name);
  command_line.AddFlag("hosts", "HOST,...",
                       "issue: host names and addresses of a chief, for clients that compare them; Lockstep's compare "
                       "the role",
                       &flags.hosts);
  command_line.AddFlag("days", "N", "how long it is valid; when absent 3650 for an authority and 365 for a kit",
                       &flags.days);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const absl::Status status = CarryOut(fs, flags, out);
  if (status.ok()) return kExitDone;
  const bool is_wrong = !absl::IsInternal(status) && !absl::IsResourceExhausted(status);
  return PrintError(kName, status.message(), is_wrong ? kExitBadConfiguration : kExitFailed, err);
}

int AuthzCommand(FileSystem*, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  CommandLine command_line("lockstep authz", "Prints the calls that each role may make to a chief with --tls_dir.",
                           "anonymous is a peer without a certificate; local is one over a unix socket.\n"
                           "A token of --token_file has the rights of a viewer, and the chief's own certificate those "
                           "of an operator.\n"
                           "A worker may end a run only in a session that has computed the canary; an operator needs "
                           "no session.");
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  out << AccessTableText();
  return kExitDone;
}

}  // namespace lockstep
