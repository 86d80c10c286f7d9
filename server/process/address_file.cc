#include "lockstep/server/process/address_file.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/address_file.h"
#include "lockstep/common/cluster/master_address.h"

namespace lockstep {
namespace {

// Returns true for every spelling of "all addresses", such as "", "*", "0", "0.0.0.0", "[::]".
bool IsEveryAddress(absl::string_view host) {
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) host = host.substr(1, host.size() - 2);
  if (host.empty() || host == "*") return true;
  in_addr v4;
  if (inet_aton(std::string(host).c_str(), &v4) != 0) return v4.s_addr == htonl(INADDR_ANY);
  in6_addr v6;
  return inet_pton(AF_INET6, std::string(host).c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

// Removes the scheme, which a listening address may have but a master string may not.
absl::string_view WithoutScheme(absl::string_view listening) {
  for (const absl::string_view scheme : {"dns:///", "dns:", "ipv4:", "ipv6:"}) {
    if (absl::ConsumePrefix(&listening, scheme)) break;
  }
  return listening;
}

// Strips "grpc://" and spaces from HOST or HOST:PORT.
absl::string_view Trimmed(absl::string_view advertise) {
  advertise = absl::StripAsciiWhitespace(advertise);
  if (absl::ConsumePrefix(&advertise, "grpc://")) absl::ConsumeSuffix(&advertise, "/");
  return advertise;
}

// Returns the address at which peers would reach a chief that listens on `listen`, with a placeholder for the port.
std::string PlaceOf(absl::string_view listen) {
  const std::vector<std::string> all = absl::StrSplit(listen, ',');
  const auto first = std::find_if(all.begin(), all.end(), [](const auto& each) { return !IsUnixAddress(each); });
  if (first == all.end()) return all.front();
  const size_t colon = first->rfind(':');
  return colon == std::string::npos ? *first : absl::StrCat(first->substr(0, colon), ":1");
}

// Adds brackets to an IPv6 address, as in HOST:PORT.
std::string InBrackets(absl::string_view host) {
  const bool bare_ipv6 = std::count(host.begin(), host.end(), ':') > 1 && !absl::StartsWith(host, "[");
  return bare_ipv6 ? absl::StrCat("[", host, "]") : std::string(host);
}

// Returns true if `advertise` is a single HOST:PORT.
bool HasPort(absl::string_view advertise) {
  const auto address = ParseMasterAddress(advertise);
  return address.ok() && address->targets.size() == 1 && !IsUnixAddress(address->targets[0]);
}

absl::Status CheckAdvertise(absl::string_view advertise) {
  if (HasPort(advertise) || HasPort(absl::StrCat(InBrackets(advertise), ":1"))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--advertise takes a host, HOST:PORT or unix:PATH by which workers reach the chief, not \"", advertise, "\""));
}

}  // namespace

absl::StatusOr<std::string> AdvertisedMaster(absl::string_view listening, absl::string_view raw_advertise,
                                             absl::string_view machine) {
  const absl::string_view advertise = Trimmed(raw_advertise);
  if (IsUnixAddress(advertise)) {
    RETURN_IF_ERROR(ParseMasterAddress(advertise).status());
    return std::string(advertise);
  }
  if (!raw_advertise.empty()) RETURN_IF_ERROR(CheckAdvertise(advertise));
  if (HasPort(advertise)) return absl::StrCat("grpc://", ParseMasterAddress(advertise)->targets[0]);
  if (IsUnixAddress(listening)) {
    if (advertise.empty()) {
      RETURN_IF_ERROR(ParseMasterAddress(listening).status());
      return std::string(listening);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--advertise=", advertise, " needs a port, but the chief listens only on ", listening));
  }
  listening = WithoutScheme(listening);
  const size_t colon = listening.rfind(':');
  if (colon == absl::string_view::npos) return absl::InvalidArgumentError(absl::StrCat(listening, " has no port"));
  absl::string_view host = listening.substr(0, colon);
  if (IsEveryAddress(host)) host = machine;
  if (!advertise.empty()) host = advertise;
  const std::string master = absl::StrCat("grpc://", InBrackets(host), listening.substr(colon));
  RETURN_IF_ERROR(ParseMasterAddress(master).status());
  return master;
}

absl::StatusOr<AddressFile> AddressFile::Create(Options options, absl::string_view listen) {
  if (options.path.empty()) {
    if (options.advertise.empty()) return AddressFile(std::move(options));
    return absl::InvalidArgumentError("--advertise is written to --address_file, which is missing");
  }
  const auto master = AdvertisedMaster(PlaceOf(listen), options.advertise, options.machine);
  if (!master.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen=", listen, " has no address for --address_file: ", master.status().message()));
  }
  const std::vector<std::string> listens = absl::StrSplit(listen, ',');
  if (IsUnixAddress(*master) && std::find(listens.begin(), listens.end(), *master) == listens.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--advertise=", options.advertise, " is none of the addresses in --listen=", listen));
  }
  const std::string directory(Dirname(options.path));
  ASSIGN_OR_RETURN(const bool exists, options.fs->Exists(directory.empty() ? "." : directory));
  if (!exists) {
    return absl::InvalidArgumentError(
        absl::StrCat("--address_file=", options.path, " is in a directory that does not exist"));
  }
  return AddressFile(std::move(options));
}

absl::Status AddressFile::Prepare() {
  if (options_.path.empty()) return absl::OkStatus();
  MasterAddress address;
  address.file = options_.path;
  if (!IsEndOfRun(FindTargets(options_.fs, address).status())) return absl::OkStatus();
  ASSIGN_OR_RETURN(mark_, ReadFile(options_.fs, options_.path));
  return options_.fs->Remove(options_.path);
}

absl::Status AddressFile::PutBack() {
  if (mark_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool exists, options_.fs->Exists(options_.path));
  return exists ? absl::OkStatus() : WriteFileAtomically(options_.fs, options_.path, mark_);
}

absl::Status AddressFile::Write(absl::string_view listening) {
  if (options_.path.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string master, AdvertisedMaster(listening, options_.advertise, options_.machine));
  RETURN_IF_ERROR(WriteFileAtomically(options_.fs, options_.path, AddressLine(master)));
  mark_.clear();
  LOG(INFO) << options_.path << " says that the chief is at " << master
            << (options_.advertise.empty() ? "; --advertise=HOST names another host" : "");
  return absl::OkStatus();
}

absl::Status AddressFile::End(const absl::Status& run) {
  const bool over = run.ok() || absl::IsInvalidArgument(run);
  if (options_.path.empty() || !over) return absl::OkStatus();
  return WriteFileAtomically(options_.fs, options_.path, EndLine(run));
}

}  // namespace lockstep
