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
  // Its output and errors are appended here.
  std::string log_path;
};

struct ProcessExit {
  int pid = 0;
  // 0 when it was killed by `signal`.
  int exit_code = 0;
  int signal = 0;
};

// "ended with exit code 1", "was killed by SIGKILL".
std::string ExitText(const ProcessExit& exit);

// Child processes, as their supervisor sees them. Not thread-safe: one thread makes all calls, and lives as long as
// the processes.
class ProcessTable {
 public:
  virtual ~ProcessTable() = default;

  // The new process's id. Errors: those of its log and its program, by name.
  virtual absl::StatusOr<int> Start(const ProcessSpec& spec) = 0;

  // Sends a signal to a process whose exit has not been returned; one that is gone already is no error.
  virtual void Signal(int pid, int signal) = 0;

  // A process that has ended since the last call; nullopt when there is none. Does not block.
  virtual absl::optional<ProcessExit> NextExit() = 0;
};

// The machine's processes. A child has a process group of its own, so that Ctrl-C in the terminal reaches the
// supervisor alone, no signal blocked, no input, and gets SIGTERM when the supervisor dies.
class PosixProcessTable : public ProcessTable {
 public:
  absl::StatusOr<int> Start(const ProcessSpec& spec) override;
  void Signal(int pid, int signal) override;
  absl::optional<ProcessExit> NextExit() override;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_PROCESS_TABLE_H_
