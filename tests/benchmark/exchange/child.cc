#include "lockstep/tests/benchmark/exchange/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace lockstep {
namespace benchmark {
namespace {

// Runs in the forked child of a multithreaded process, so it may only make async-signal-safe calls.
[[noreturn]] void Become(char* const* command, int input, int output, const char* error_file) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  const int errors = open(error_file, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (errors >= 0) dup2(errors, STDERR_FILENO);
  execv(command[0], command);
  _exit(127);
}

// Returns the value, in bytes, of a line of /proc/<pid>/status whose unit is kB.
double StatusBytes(pid_t pid, const char* key) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, key)) return std::atof(line.c_str() + std::strlen(key)) * 1024;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const std::vector<std::string>& command,
                                                    const std::string& error_file) {
  std::unique_ptr<Child> child(new Child());
  child->name_ = absl::StrCat(command[0], " (its errors: ", error_file, ")");
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int input[2], output[2];
  if (pipe2(input, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("no pipe");
  child->input_ = input[1];
  if (pipe2(output, O_CLOEXEC) != 0) {
    close(input[0]);
    return absl::ResourceExhaustedError("no pipe");
  }
  child->output_ = output[0];
  child->pid_ = fork();
  if (child->pid_ == 0) Become(words.data(), input[0], output[1], error_file.c_str());
  close(input[0]);
  close(output[1]);
  if (child->pid_ < 0) return absl::ResourceExhaustedError("cannot fork");
  return child;
}

Child::~Child() {
  Kill();
  if (input_ >= 0) close(input_);
  if (output_ >= 0) close(output_);
}

void Child::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

absl::Status Child::Write(const std::string& line) {
  const std::string text = line + "\n";
  if (write(input_, text.data(), text.size()) == static_cast<ssize_t>(text.size())) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(name_, " does not read"));
}

absl::StatusOr<std::string> Child::ReadLine(absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (true) {
    const size_t end = received_.find('\n');
    if (end != std::string::npos) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    pollfd ready = {output_, POLLIN, 0};
    const auto left = static_cast<int>(absl::ToInt64Milliseconds(deadline - absl::Now()));
    const int count = left > 0 ? poll(&ready, 1, left) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return absl::DeadlineExceededError(absl::StrCat(name_, " said nothing for ", absl::FormatDuration(limit)));
    }
    char buffer[256];
    const ssize_t got = read(output_, buffer, sizeof(buffer));
    if (got <= 0) return absl::UnavailableError(absl::StrCat(name_, " has ended"));
    received_.append(buffer, static_cast<size_t>(got));
  }
}

double PeakBytesOf(pid_t pid) { return StatusBytes(pid, "VmHWM:"); }

double OwnBytesOf(pid_t pid) {
  double bytes = StatusBytes(pid, "RssAnon:");
  std::error_code ended;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"), ended)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), ended).string();
    struct stat file;
    if (!absl::StartsWith(target, "/memfd:") || stat(entry.path().c_str(), &file) != 0) continue;
    bytes += static_cast<double>(file.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace benchmark
}  // namespace lockstep
