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

// Keeps the processes of a run on this machine alive, a chief and its workers, until the chief says that the run is
// over. Life cycle: Start, then Poll after every signal and at next_poll() at the latest, until outcome() has a value;
// all processes have ended by then. A stop signals the chief first, and the workers after it has ended, so that no
// worker leaves a step half applied that the chief is about to save. Never blocks and has no thread. Not thread-safe.
class Launcher {
 public:
  struct Options {
    // Must outlive the launcher, as must `processes` and `fs`.
    Clock* clock = nullptr;
    ProcessTable* processes = nullptr;
    FileSystem* fs = nullptr;
    // Returns the chief's command for an address to listen on. The chief writes the port that it got to port_file, and
    // gets the same port when it is restarted.
    std::function<std::vector<std::string>(const std::string& listen)> chief_command;
    // Returns the command of worker 0, 1, ... for the chief's address.
    std::function<std::vector<std::string>(int worker, const std::string& master)> worker_command;
    int workers = 2;
    // Limit for each process.
    int64_t max_restarts = 10;
    // "host:port" (port 0: any free one), "unix:/path" or "unix-abstract:name".
    std::string listen = "127.0.0.1:0";
    std::string port_file;
    // The logs are chief.log, worker-0.log, ... in this directory, which must exist.
    std::string log_directory;
    // Receives messages about the processes, in whole lines without a line feed.
    std::function<void(const std::string&)> say;
    // Time for the chief to save its last step and exit after a stop signal; then it is killed.
    absl::Duration stop_limit = absl::Seconds(35);
  };
  struct Outcome {
    int exit_code = 0;
    // Why the run failed, in one line, and the log of the process that failed; empty if none failed.
    std::string message;
    std::string log_path;
    // Offset in the log at which the process began to write when it was last started.
    uint64_t log_offset = 0;
  };

  explicit Launcher(Options options);

  // Starts the chief; the workers follow when it listens. Errors are those of the program or of the port file.
  absl::Status Start();
  // Collects the processes that have ended, and performs the actions that are due.
  void Poll();
  // Called when this process receives one of WatchedSignals(). The first stop signal asks the chief to save its last
  // step and stop; one that means an immediate end, as StopRequests defines it, kills all processes. If the run is
  // ending already, it ends sooner, with the same outcome. The outcome of a stop is kExitTerminated only if the chief
  // says that its last step is saved. A save signal is passed on to the chief.
  void OnSignal(int signal);

  // The time at which Poll must be called at the latest, signals aside.
  absl::Time next_poll() const;
  // The chief's address, "grpc://host:port" or the unix socket's, once it is known.
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
    // When to start the process; InfiniteFuture if never.
    absl::Time start_at = absl::InfiniteFuture();
    // At the end: when to send SIGTERM, when to kill, and whether either was sent.
    absl::Time terminate_at = absl::InfiniteFuture();
    absl::Time kill_at = absl::InfiniteFuture();
    bool told = false;
  };

  absl::Status StartChild(Child* child, std::vector<std::string> command);
  void StartPending();
  void ReadPortFile();
  void OnExit(const ProcessExit& exit);
  void OnChiefEnd(const RestartPolicy::Decision& decision);
  void OnWorkerEnd(Child* worker, const RestartPolicy::Decision& decision);
  // Handles a chief that exits while the run is ending.
  void OnLateChiefEnd(const ProcessExit& exit, const RestartPolicy::Decision& decision);
  // After this no process is started.
  void End(Outcome outcome);
  void Fail(const Child& culprit, int exit_code, const std::string& text);
  // Signals the chief at `when`, if it runs, and the workers after it has ended.
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

  bool ending_ = false;
  // The outcome once all processes have ended, and whether a worker, not the chief, caused it.
  Outcome end_;
  bool failed_worker_ = false;
  StopRequests stop_requests_;
  absl::optional<Outcome> outcome_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_LAUNCHER_H_
