#include "lockstep/tests/benchmark/exchange/process_group.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr int kReplyTimeoutMs = 120000;
// The workers of a run finish their steps at about the same time. A worker that is this much later than the others
// needs help.
constexpr int kHelpAfterMs = 100;

// A command to a process. Commands to the server have no steps. To a worker, `steps` == 0 means that all workers have
// finished.
struct Command {
  int warm_up = 0;
  int steps = 0;
};

struct Answer {
  double begin = 0;
  double end = 0;
  double cpu = 0;
  double bytes = 0;  // received
  double peak_bytes = 0;
  char address[256] = "";
};

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double PeakBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

template <typename T>
bool Send(int fd, const T& message) {
  return write(fd, &message, sizeof(message)) == static_cast<ssize_t>(sizeof(message));
}

template <typename T>
bool Receive(int fd, T* message) {
  return read(fd, message, sizeof(*message)) == static_cast<ssize_t>(sizeof(*message));
}

bool IsReadable(int fd, int timeout_ms) {
  pollfd ready = {fd, POLLIN, 0};
  return poll(&ready, 1, timeout_ms) == 1;
}

absl::Status AwaitAnswer(int fd, Answer* answer) {
  if (!IsReadable(fd, kReplyTimeoutMs)) {
    return absl::DeadlineExceededError("a process of a benchmark does not answer");
  }
  if (!Receive(fd, answer)) return absl::UnavailableError("a process of a benchmark has died");
  return absl::OkStatus();
}

// Ends this process. Prints the error unless `status` is OK.
[[noreturn]] void Exit(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "benchmark process: %s\n", status.ToString().c_str());
  std::_Exit(status.ok() ? 0 : 1);
}

[[noreturn]] void ServerMain(const Exchange& exchange, const ExchangeSpec& spec, int control) {
  auto server = exchange.serve(spec);
  if (!server.ok()) Exit(server.status());
  Answer hello;
  std::snprintf(hello.address, sizeof(hello.address), "%s", (*server)->address().c_str());
  if (!Send(control, hello)) Exit(absl::OkStatus());
  Command command;
  while (Receive(control, &command)) {
    Answer answer;
    answer.cpu = CpuSeconds();
    answer.peak_bytes = PeakBytes();
    Send(control, answer);
  }
  Exit(absl::OkStatus());
}

// Returns 0 if the exchange does not count bytes.
int64_t BytesSent(const ExchangeSpec& spec, ExchangeWorker* worker) {
  if (!spec.counts_bytes) return 0;
  const absl::StatusOr<int64_t> bytes = worker->BytesSent();
  if (!bytes.ok()) Exit(bytes.status());
  return *bytes;
}

[[noreturn]] void WorkerMain(const Exchange& exchange, const ExchangeSpec& spec, const std::string& address, int index,
                             int control) {
  auto worker = exchange.connect(spec, address, index);
  if (!worker.ok()) Exit(worker.status());
  Send(control, Answer());
  Command command;
  while (Receive(control, &command)) {
    if (command.steps == 0) continue;
    absl::Status status = (*worker)->Step(command.warm_up);
    if (!status.ok()) Exit(status);
    Answer answer;
    const int64_t bytes_before = BytesSent(spec, worker->get());
    const double cpu_before = CpuSeconds();
    answer.begin = Now();
    status = (*worker)->Step(command.steps);
    answer.end = Now();
    answer.cpu = CpuSeconds() - cpu_before;
    if (!status.ok()) Exit(status);
    answer.bytes = static_cast<double>(BytesSent(spec, worker->get()) - bytes_before);
    answer.peak_bytes = PeakBytes();
    Send(control, answer);
    while (status.ok() && !IsReadable(control, kHelpAfterMs)) status = (*worker)->HelpOthers();
    if (!status.ok()) Exit(status);
  }
  Exit(absl::OkStatus());
}

// Binds this thread to one processor. Threads that it starts later inherit the affinity.
void StayOnOneProcessor() {
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof(processors), &processors) != 0) return;
  int first = 0;
  while (first < CPU_SETSIZE && !CPU_ISSET(first, &processors)) ++first;
  CPU_ZERO(&processors);
  CPU_SET(first, &processors);
  sched_setaffinity(0, sizeof(processors), &processors);
}

// Forks a process that calls `body` with its end of a socket pair.
absl::Status Fork(const ExchangeSpec& spec, const std::function<void(int)>& body, pid_t* pid, int* control) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return absl::InternalError("no socket pair");
  std::fflush(nullptr);
  *pid = fork();
  if (*pid < 0) return absl::ResourceExhaustedError("cannot fork");
  if (*pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, spec.name.c_str());  // truncated to 15 characters
    // Closes all other descriptors. Otherwise, the processes would not notice when one of them dies.
    for (int fd = 3; fd < 256; ++fd) {
      if (fd != ends[1]) close(fd);
    }
    if (spec.one_processor) StayOnOneProcessor();
    body(ends[1]);
  }
  close(ends[1]);
  *control = ends[0];
  return absl::OkStatus();
}

}  // namespace

size_t BytesOf(const v1::ModelSpec& model) {
  size_t bytes = 0;
  for (const v1::VariableSpec& variable : model.variables()) {
    size_t elements = 1;
    for (const int64_t dimension : variable.shape()) elements *= static_cast<size_t>(dimension);
    bytes += elements * sizeof(float);
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Start(const Exchange& exchange, const ExchangeSpec& spec) {
  std::unique_ptr<ProcessGroup> group(new ProcessGroup());
  const auto add = [&group, &spec](const std::function<void(int)>& body) {
    group->processes_.emplace_back();
    return Fork(spec, body, &group->processes_.back().pid, &group->processes_.back().control);
  };
  RETURN_IF_ERROR(add([&](int control) { ServerMain(exchange, spec, control); }));
  Answer hello;
  RETURN_IF_ERROR(AwaitAnswer(group->processes_[0].control, &hello));
  group->address_ = hello.address;
  for (int i = 0; i < spec.workers; ++i) {
    RETURN_IF_ERROR(add([&](int control) { WorkerMain(exchange, spec, group->address_, i, control); }));
  }
  for (int i = 1; i <= spec.workers; ++i) RETURN_IF_ERROR(AwaitAnswer(group->processes_[i].control, &hello));
  return group;
}

ProcessGroup::~ProcessGroup() {
  for (const Process& process : processes_) {
    if (process.control >= 0) close(process.control);
    if (process.pid > 0) kill(process.pid, SIGKILL);
  }
  for (const Process& process : processes_) {
    if (process.pid > 0) waitpid(process.pid, nullptr, 0);
  }
}

absl::StatusOr<ProcessGroup::Timing> ProcessGroup::Run(int warm_up, int steps) {
  Answer before, after;
  Send(processes_[0].control, Command());
  RETURN_IF_ERROR(AwaitAnswer(processes_[0].control, &before));
  for (size_t i = 1; i < processes_.size(); ++i) Send(processes_[i].control, Command{warm_up, steps});
  double begin = 0, end = 0;
  Timing timing;
  const double workers = static_cast<double>(processes_.size() - 1);
  for (size_t i = 1; i < processes_.size(); ++i) {
    Answer answer;
    RETURN_IF_ERROR(AwaitAnswer(processes_[i].control, &answer));
    begin = i == 1 ? answer.begin : std::min(begin, answer.begin);
    end = std::max(end, answer.end);
    timing.worker_cpu_per_step += answer.cpu / steps / workers;
    timing.bytes_per_step = std::max(timing.bytes_per_step, answer.bytes / steps);
    timing.worker_peak = std::max(timing.worker_peak, answer.peak_bytes);
  }
  for (size_t i = 1; i < processes_.size(); ++i) Send(processes_[i].control, Command());
  Send(processes_[0].control, Command());
  RETURN_IF_ERROR(AwaitAnswer(processes_[0].control, &after));
  timing.seconds_per_step = (end - begin) / steps;
  timing.server_cpu_per_step = (after.cpu - before.cpu) / (warm_up + steps);
  timing.server_peak = after.peak_bytes;
  return timing;
}

}  // namespace benchmark
}  // namespace lockstep
