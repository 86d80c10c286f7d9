#ifndef LOCKSTEP_CLI_LAUNCHER_LAUNCHER_H_
#define LOCKSTEP_CLI_LAUNCHER_LAUNCHER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/cli/launcher/process_table.h"
#include "lockstep/cli/launcher/restart_policy.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/process/stop_requests.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Keeps a run's processes on this machine, a chief and its workers, alive until the chief says that the run is over.
// Usually the chief starts first. With Options::is_declared, the workers start first, because one of them declares the
// run. Without Options::chief_command, the chief is elsewhere, and the workers' exits decide the outcome.
// Call Start, then Poll after every signal and no later than next_poll(), until outcome() has a value. All processes
// have ended by then. A stop signals the chief first, and the workers after the chief has ended, so that no worker
// leaves a step half applied that the chief is about to save. Never blocks and has no thread. Not thread-safe.
class Launcher {
 public:
  struct Options {
    // Must outlive the launcher, as must `processes` and `fs`.
    Clock* clock = nullptr;
    ProcessTable* processes = nullptr;
    FileSystem* fs = nullptr;
    // Returns the chief's command for a given address to listen on. The chief writes its port to port_file, and gets
    // the same port after a restart. Null if the chief is elsewhere, at `master`.
    std::function<std::vector<std::string>(const std::string& listen)> chief_command;
    // Returns the command for worker 0, 1, ..., given the chief's address.
    std::function<std::vector<std::string>(int worker, const std::string& master)> worker_command;
    int workers = 2;
    // True if other launchers also have workers. The run then continues after all of this launcher's workers have
    // stopped.
    bool other_workers = false;
    // If set, the workers start first, with `master` as the chief's address, and the chief starts once this returns
    // true.
    std::function<bool()> is_declared;
    // The chief's address for workers. With is_declared, it is a file that the chief will write. Empty if this
    // launcher's chief reports its port.
    std::string master;
    // Time for workers to exit by themselves when the run is over.
    absl::Duration worker_grace = absl::Seconds(2);
    // Limit for each process.
    int64_t max_restarts = 10;
    // "host:port" (port 0 means any free port), "unix:/path" or "unix-abstract:name".
    std::string listen = "127.0.0.1:0";
    std::string port_file;
    // The logs are chief.log, worker-0.log, ... in this directory, which must exist. If empty, the processes write to
    // this process's stdout and stderr.
    std::string log_directory;
    // Called with the id of each process that has ended but was not started by the launcher. May be null.
    std::function<void(int pid)> on_other_exit;
    // Receives messages about the processes, each a whole number of lines without the final line feed.
    std::function<void(const std::string&)> say;
    // Time for the chief to save its last step and exit after a stop signal. After that, it is killed.
    absl::Duration stop_limit = absl::Seconds(35);
  };
  struct Outcome {
    int exit_code = 0;
    // Why the run failed or was stopped, in one line. Empty if the run finished.
    std::string message;
    // The log of the process that failed. Empty if none failed.
    std::string log_path;
    // Size of the log when the process was last started, which is the offset of its first output.
    uint64_t log_offset = 0;
  };

  explicit Launcher(Options options);

  // Starts the chief. Once the chief listens, the workers start. With is_declared, or without a chief, Poll starts the
  // workers. Returns errors about the program or the port file.
  absl::Status Start();
  // Collects ended processes and performs the actions that are due.
  void Poll();
  // Called when this process receives one of WatchedSignals(). The first stop signal asks the chief to save its last
  // step and stop. A signal that means an immediate end, as StopRequests defines it, kills all processes. If the run is
  // already ending, it ends sooner, with the same outcome. The outcome of a stop is kExitTerminated only if the chief
  // says that its last step is saved. Passes a save signal on to the chief.
  void OnSignal(int signal);

  // Returns the latest time at which Poll must be called if no signal arrives.
  absl::Time next_poll() const;
  // Returns the chief's address, "grpc://host:port" or a unix socket, once it is known.
  const std::string& master() const { return master_; }
  const absl::optional<Outcome>& outcome() const { return outcome_; }

 private:
  struct Child {
    Child(std::string name, std::string log_path, int64_t max_restarts, uint64_t seed)
        : name(std::move(name)), log_path(std::move(log_path)), policy(max_restarts, seed) {}
    const std::string name;
    const std::string log_path;
    RestartPolicy policy;
    // 0 if not running.
    int pid = 0;
    absl::Time started;
    uint64_t log_offset = 0;
    // When to start the process, or InfiniteFuture for never.
    absl::Time start_at = absl::InfiniteFuture();
    // While the run is ending: when to send SIGTERM and when to send SIGKILL, and whether either signal was sent.
    absl::Time terminate_at = absl::InfiniteFuture();
    absl::Time kill_at = absl::InfiniteFuture();
    bool told = false;
  };

  bool HasChief() const { return options_.chief_command != nullptr; }
  // Returns the path of a process's log, or an empty string if it has none.
  std::string LogPath(const std::string& name) const;
  absl::Status StartChild(Child* child, std::vector<std::string> command);
  void StartPending();
  void ReadPortFile();
  void OnExit(const ProcessExit& exit);
  void OnChiefEnd(const RestartPolicy::Decision& decision);
  void OnWorkerEnd(Child* worker, const RestartPolicy::Decision& decision);
  // Handles a chief that exits while the run is ending.
  void OnLateChiefEnd(const ProcessExit& exit, const RestartPolicy::Decision& decision);
  // Handles a program's worker that ends without an error while the run continues.
  void OnDeclarerEnd(const Child& worker);
  // Begins the end of the run. No process is started after this.
  void End(Outcome outcome);
  void Fail(const Child& culprit, int exit_code, const std::string& text);
  // Signals the chief at `when` if it is running, and the workers after it has ended.
  void StopChiefAt(absl::Time when);
  void StopWorkersAt(absl::Time when);
  void RequestSave();
  void StopAtOnce();
  void EscalateShutdown();
  void Press(Child* child);
  std::vector<Child*> Children();
  bool AnyWorkerLeft() const;

  const Options options_;
  Child chief_;
  std::vector<Child> workers_;
  // The chief's listening address: options_.listen, with the port once it is known.
  std::string listen_;
  std::string master_;

  // False until a worker has declared the run.
  bool declared_;
  bool ending_ = false;
  // The outcome to report once all processes have ended, and whether it was caused by a worker rather than the chief.
  Outcome end_;
  bool failed_worker_ = false;
  StopRequests stop_requests_;
  absl::optional<Outcome> outcome_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_LAUNCHER_H_
