#ifndef LOCKSTEP_CLI_LAUNCHER_PROCESS_TABLE_H_
#define LOCKSTEP_CLI_LAUNCHER_PROCESS_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace lockstep {

struct ProcessSpec {
  // The program's path, then its arguments.
  std::vector<std::string> command;
  // The file to which stdout and stderr are appended. If empty, the process uses the supervisor's stdout and stderr.
  std::string log_path;
  // If true, the process shares the supervisor's process group and input, so that a person can use it in the terminal.
  bool foreground = false;
};

struct ProcessExit {
  int pid = 0;
  // 0 if the process was killed by `signal`.
  int exit_code = 0;
  int signal = 0;
};

// Returns "SIGTERM", or "signal 35" for a signal without a name.
std::string SignalText(int signal);

// Returns, for example, "ended with exit code 1" or "was killed by SIGKILL".
std::string ExitText(const ProcessExit& exit);

// Child processes from their supervisor's point of view. Not thread-safe: one thread must make all calls and outlive
// the processes.
class ProcessTable {
 public:
  virtual ~ProcessTable() = default;

  // Starts a process and returns its id. Errors name the log or the program.
  virtual absl::StatusOr<int> Start(const ProcessSpec& spec) = 0;

  // Sends a signal to a process that NextExit has not returned yet. Does nothing if it has already exited.
  virtual void Signal(int pid, int signal) = 0;

  // Returns a process that has ended since the last call, or nullopt. Does not block.
  virtual absl::optional<ProcessExit> NextExit() = 0;
};

// Real processes. Each child has its own process group, so that Ctrl-C in the terminal reaches only the supervisor, and
// no input, unless it is in the foreground. A child starts with no blocked signals, and gets SIGTERM when the
// supervisor dies.
class PosixProcessTable : public ProcessTable {
 public:
  absl::StatusOr<int> Start(const ProcessSpec& spec) override;
  void Signal(int pid, int signal) override;
  absl::optional<ProcessExit> NextExit() override;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_PROCESS_TABLE_H_
