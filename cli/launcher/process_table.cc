#include "lockstep/cli/launcher/process_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace lockstep {
namespace {

absl::Status Error(absl::string_view what, const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
}

// Runs in the child between fork and exec, and therefore makes only async-signal-safe calls. A negative `log` means the
// supervisor's stdout and stderr. Never returns.
[[noreturn]] void Become(char* const* arguments, int log, bool foreground, pid_t parent, int error_pipe) {
  if (!foreground) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(143);  // The parent died before it could be watched.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!foreground) {
    const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(input, STDIN_FILENO);
  }
  if (log >= 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  execv(arguments[0], arguments);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(error_pipe, &error, sizeof error);
  _exit(127);
}

}  // namespace

std::string SignalText(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

std::string ExitText(const ProcessExit& exit) {
  return exit.signal == 0 ? absl::StrCat("ended with exit code ", exit.exit_code)
                          : absl::StrCat("was killed by ", SignalText(exit.signal));
}

absl::StatusOr<int> PosixProcessTable::Start(const ProcessSpec& spec) {
  CHECK(!spec.command.empty()) << "a process needs a program";
  std::vector<char*> arguments;
  for (const std::string& word : spec.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  int log = -1;
  if (!spec.log_path.empty()) {
    log = open(spec.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log < 0) return Error("write", spec.log_path, errno);
  }
  // exec closes the pipe. If exec fails, the pipe carries the reason.
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) {
    const int error = errno;
    if (log >= 0) close(log);
    return Error("make a pipe for", spec.command[0], error);
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Become(arguments.data(), log, spec.foreground, parent, error_pipe[1]);
  const int fork_error = errno;
  if (log >= 0) close(log);
  close(error_pipe[1]);
  int exec_error = 0;
  ssize_t count = 0;
  if (pid > 0) {
    do count = read(error_pipe[0], &exec_error, sizeof exec_error);
    while (count < 0 && errno == EINTR);
  }
  close(error_pipe[0]);
  if (pid < 0) return Error("start", spec.command[0], fork_error);
  if (count == sizeof exec_error) {
    waitpid(pid, nullptr, 0);
    return Error("start", spec.command[0], exec_error);
  }
  return pid;
}

void PosixProcessTable::Signal(int pid, int signal) {
  // SIGKILL goes to the whole group, because the program gets no chance to end its own children.
  kill(signal == SIGKILL ? -pid : pid, signal);
}

absl::optional<ProcessExit> PosixProcessTable::NextExit() {
  int status = 0;
  const pid_t pid = waitpid(-1, &status, WNOHANG);
  if (pid <= 0) return absl::nullopt;
  ProcessExit exit;
  exit.pid = pid;
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
  } else {
    exit.exit_code = WEXITSTATUS(status);
  }
  return exit;
}

}  // namespace lockstep
