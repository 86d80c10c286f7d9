#ifndef LOCKSTEP_CLI_COMMANDS_TASK_PROCESSES_H_
#define LOCKSTEP_CLI_COMMANDS_TASK_PROCESSES_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/cli/launcher/launcher.h"
#include "lockstep/cli/launcher/resolved_task.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/process/serve_security.h"

namespace lockstep {

// Processes on this machine that belong to one run, for the commands that start them: `run`, `launch` and `task`.

// The flags --workers, --max_restarts and --listen, and the flags of ServeSecurity.
struct ProcessFlags {
  // The options that --workers and --max_restarts set.
  Launcher::Options launcher;
  // If empty, the chief listens on a unix socket that only this user can reach.
  std::string listen;
  ServeSecurity security;

  void Declare(const std::string& workers_help, const std::string& listen_help, CommandLine* command_line);
  // Returns InvalidArgument if a number is too small, or an error from CheckServeSecurity.
  absl::Status Check(FileSystem* fs) const;
};

// The command line of a chief. The program is LOCKSTEP_CHIEF_BINARY if the environment has it, or else this program.
struct ChiefCommand {
  std::string logdir;
  // A second address to listen on, for workers on this machine. May be empty.
  std::string socket;
  ServeSecurity security;
  // Either may be empty.
  std::string port_file;
  std::string address_file;
  // The host or socket that the chief advertises. If absent, the chief takes it from the environment.
  absl::optional<std::string> advertise;
  absl::Duration lock_wait;
  bool new_run = false;
  // True if processes that this launcher does not start may look for the chief around the end of the run.
  bool lingers = false;
  // CONFIG and its flags.
  std::vector<std::string> config;

  std::vector<std::string> Words(const std::string& listen) const;
};

// Returns the first words of a worker's command line: LOCKSTEP_WORKER_BINARY if the environment has it, or else this
// program, which may link models of its own, and "worker".
std::vector<std::string> WorkerWords();

// Creates a directory below TMPDIR that only this user can access, and returns its path.
absl::StatusOr<std::string> MakeTemporaryDirectory();

// Time for a chief to exit, in addition to the time for saving. A chief that hangs ends itself after kEndingLimit, and
// that takes a moment longer.
extern const absl::Duration kChiefEnd;

// The processes of one task: a chief, workers of a chief elsewhere, or a chief and workers.
struct TaskProcesses {
  // The command that starts the processes, for messages, e.g. "lockstep task".
  std::string name;
  // If the task's `listen` is empty, a chief listens on a unix socket, or on loopback if the socket's path would be too
  // long.
  ResolvedTask task;
  // The security settings of the chief.
  ServeSecurity security;
  // True if workers of other tasks connect to this task's chief.
  bool other_tasks = false;
  // Its number of workers and max_restarts count. The other options are derived from this struct.
  Launcher::Options launcher;
  // The program that the workers run. If empty, they run `lockstep worker`.
  std::vector<std::string> program;
  // CONFIG and its flags, for a chief. If empty, the program declares the run (python/lockstep/_chief.py).
  std::vector<std::string> config;
  // Time for a chief to save its last step and exit.
  absl::Duration stop_limit = absl::Seconds(120);
  bool new_run = false;
  // Number of compute threads of each built-in worker. 0 means the configured number.
  int compute_threads = 0;
  // If true, each process writes its output to its own log, in a directory that `out` names, and the first worker's
  // output is also copied to `out`. If false, the processes share this one's stdout and stderr.
  bool has_logs = false;
};

// Prints the outcome of the processes that `command` ran. If one failed, also prints the end of its log. The last line
// says why they ended. Returns the exit code.
int ReportOutcome(FileSystem* fs, absl::string_view command, const Launcher::Outcome& outcome, std::ostream& out,
                  std::ostream& err);

// Runs the processes until all have ended, and prints what happens to them. Returns the exit code. Must be called
// before any other thread exists.
int RunTaskProcesses(FileSystem* fs, const TaskProcesses& processes, std::ostream& out, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_TASK_PROCESSES_H_
