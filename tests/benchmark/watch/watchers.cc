#include "lockstep/tests/benchmark/watch/watchers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/transport/grpc_run_feed.h"
#include "lockstep/tests/benchmark/exchange/child.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(1);
constexpr absl::Duration kScrapePeriod = absl::Seconds(1);

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "watchers: %s\n", status.ToString().c_str());
  std::_Exit(1);
}

// Starts the page, and returns its port.
absl::StatusOr<int> StartPage(const Watchers::Options& options, std::unique_ptr<Child>* page) {
  std::vector<std::string> command = {options.page_program, "page", absl::StrCat("--master=grpc://", options.address),
                                      "--http=127.0.0.1:0"};
  if (!options.tls_dir.empty()) command.push_back(absl::StrCat("--tls_dir=", options.tls_dir));
  ASSIGN_OR_RETURN(*page, Child::Start(command, options.page_log));
  ASSIGN_OR_RETURN(const std::string line, (*page)->ReadLine(kLimit));
  int port = 0;
  if (absl::SimpleAtoi(line.substr(line.rfind(':') + 1), &port)) return port;
  return absl::InternalError(absl::StrCat("the page has no address: ", line));
}

// Reads /metrics as Prometheus does.
absl::Status ReadMetrics(int port) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  constexpr absl::string_view kRequest = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  std::string reply;
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      send(connection, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(kRequest.size())) {
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(connection, buffer, sizeof(buffer), 0)) > 0;) {
      reply.append(buffer, static_cast<size_t>(got));
    }
  }
  close(connection);
  if (absl::StrContains(reply, "\nlockstep_up 1\n")) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the page has no metrics of the run: ", reply.substr(0, 200)));
}

// Watches until the process is killed. Writes a byte to `ready` when all watchers work.
[[noreturn]] void Watch(const Watchers::Options& options, int ready) {
  std::unique_ptr<Child> page;
  int port = 0;
  if (!options.page_program.empty()) {
    const auto started = StartPage(options, &page);
    if (!started.ok()) Fail(started.status());
    port = *started;
  }
  GrpcClientOptions client;
  client.credentials = Credentials(options.tls_dir);
  for (int i = 0; i < options.calls; ++i) {
    std::shared_ptr<RunFeed> feed;
    v1::WatchRunReply first;
    absl::Status status;
    // The chief may not know yet that the watchers of an earlier round are gone.
    for (const absl::Time deadline = absl::Now() + kLimit;;) {
      feed = NewGrpcRunFeed(options.address, v1::WatchRunRequest(), client);
      status = feed->Read(&first);
      if (!absl::IsUnavailable(status) || absl::Now() > deadline) break;
      absl::SleepFor(absl::Milliseconds(10));
    }
    if (!status.ok()) Fail(status);
    std::thread([feed] {
      v1::WatchRunReply reply;
      absl::Status status;
      while (status.ok()) status = feed->Read(&reply);
      Fail(status);
    }).detach();
  }
  // The page needs a moment until it has a reply of the chief.
  const absl::Time deadline = absl::Now() + kLimit;
  while (port > 0 && !ReadMetrics(port).ok() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(10));
  if (write(ready, "!", 1) != 1) Fail(absl::UnavailableError("the benchmark is gone"));
  while (true) {
    absl::SleepFor(kScrapePeriod);
    if (port == 0) continue;
    if (const absl::Status status = ReadMetrics(port); !status.ok()) Fail(status);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Watchers>> Watchers::Start(const Options& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("no pipe");
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return absl::ResourceExhaustedError("cannot fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    Watch(options, ends[1]);
  }
  close(ends[1]);
  std::unique_ptr<Watchers> watchers(new Watchers(pid));
  pollfd ready = {ends[0], POLLIN, 0};
  char byte = 0;
  const bool works =
      poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(2 * kLimit))) == 1 && read(ends[0], &byte, 1) == 1;
  close(ends[0]);
  if (!works) return absl::UnavailableError("the watchers do not get what they watch");
  return watchers;
}

Watchers::~Watchers() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

absl::Status Watchers::Check() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0) return absl::OkStatus();
  pid_ = -1;
  return absl::UnavailableError("the watchers have ended");
}

}  // namespace benchmark
}  // namespace lockstep
