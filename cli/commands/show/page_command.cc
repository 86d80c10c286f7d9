#include <unistd.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/remote_chief.h"
#include "lockstep/cli/launcher/signal_wait.h"
#include "lockstep/cli/page/page_server.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/transport/connection/credentials_flags.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep page";

struct Flags {
  std::string master;
  CredentialsFlags credentials;
  std::string logdir;
  std::string http = "127.0.0.1:9464";
  bool any_port = false;
  std::vector<std::string> hosts;
  std::string http_token_file;
  bool http_insecure = false;
  std::string url_file;
};

void Declare(Flags* flags, CommandLine* command_line) {
  command_line->AddFlag("master", "grpc://HOST:PORT", kRemoteMasterHelp, &flags->master);
  flags->credentials.DeclareWithToken(command_line);
  command_line->AddFlag(
      "logdir", "DIR",
      "the run's folder, for evaluations and digests; without --master the page shows what DIR holds, "
      "also when the run is over",
      &flags->logdir);
  command_line->AddFlag("http", "HOST:PORT", "address to serve on; port 0 takes any free port", &flags->http);
  command_line->AddFlag("any_port", "", "if the port is in use, takes any free one", &flags->any_port);
  command_line->AddFlag("host", "NAME",
                        "a name by which browsers may reach this page, in addition to localhost and IP addresses",
                        &flags->hosts);
  command_line->AddFlag(
      "http_token_file", "FILE",
      "asks browsers for the token in FILE: \"Authorization: Bearer TOKEN\"; in a browser, add #token=TOKEN to "
      "the address",
      &flags->http_token_file);
  command_line->AddFlag("http_insecure", "", "serves on an address that other machines reach, without a token",
                        &flags->http_insecure);
  command_line->AddFlag("url_file", "FILE", "writes the page's address to this file", &flags->url_file);
}

bool IsLoopback(const std::string& http) {
  return absl::StartsWith(http, "127.") || absl::StartsWith(http, "localhost:") || absl::StartsWith(http, "[::1]:");
}

absl::StatusOr<PageServer::Options> OptionsOf(FileSystem* fs, const Flags& flags) {
  PageServer::Options options;
  options.fs = fs;
  options.clock = Clock::Real();
  options.logdir = flags.logdir;
  if (!flags.master.empty()) {
    ASSIGN_OR_RETURN(options.master, ParseRemoteMaster(flags.master));
    options.master_text = flags.master;
    ASSIGN_OR_RETURN(options.credentials, flags.credentials.Load(fs));
  } else if (flags.logdir.empty()) {
    return absl::InvalidArgumentError("give --master=grpc://HOST:PORT of a running chief, or --logdir=DIR of a run");
  }
  options.http.address = flags.http;
  for (const std::string& host : flags.hosts) options.http.names.insert(absl::AsciiStrToLower(host));
  options.any_port = flags.any_port;
  if (!flags.http_token_file.empty()) {
    ASSIGN_OR_RETURN(const std::string token, ReadFile(fs, flags.http_token_file));
    options.http.token = std::string(absl::StripAsciiWhitespace(token));
    if (options.http.token.size() < 16) {
      return absl::InvalidArgumentError(absl::StrCat(flags.http_token_file, " has a token of ",
                                                     options.http.token.size(), " bytes; at least 16 are needed"));
    }
  } else if (!IsLoopback(flags.http) && !flags.http_insecure) {
    return absl::InvalidArgumentError(absl::StrCat(
        "other machines can reach ", flags.http,
        ", and would see the run: give --http_token_file=FILE, or --http_insecure on a network that you trust"));
  }
  return options;
}

}  // namespace

int PageCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  Flags flags;
  CommandLine command_line(
      kName, "Shows a run in a browser: loss, workers, events, checkpoints; /metrics is for Prometheus.",
      "The page is a process of its own and stays when the chief is gone. Ctrl-C ends it. It serves\n"
      "/, /state.json, /status.json, /metrics and /healthz; docs/observe.md describes them.\n"
      "Exit codes: 0 stopped; 2 wrong arguments, or DIR holds no run; 138 the address is in use.");
  Declare(&flags, &command_line);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  auto options = OptionsOf(fs, flags);
  if (!options.ok()) return PrintError(kName, options.status().message(), kExitBadConfiguration, err);
  SignalWait signals;  // must precede any thread
  const auto page = PageServer::Start(*std::move(options));
  if (!page.ok()) {
    const bool in_use = absl::IsUnavailable(page.status());
    return PrintError(kName, page.status().message(), in_use ? kExitRetryable : kExitBadConfiguration, err);
  }
  out << "page: " << (*page)->url() << "\n" << std::flush;
  if (!flags.url_file.empty()) {
    const absl::Status written = WriteFileAtomically(fs, flags.url_file, (*page)->url() + "\n");
    if (!written.ok()) return PrintError(kName, written.message(), kExitFailed, err);
  }
  absl::optional<int> signal;
  while (!signal || !IsStop(*signal)) signal = signals.Wait(absl::Hours(1));
  signals.IgnoreStops();
  return kExitDone;
}

}  // namespace lockstep
