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
// over. Life: Start, then Poll after every signal and at next_poll() at the latest, until outcome() has a value;
// all processes have ended then. A stop goes to the chief first, and to the workers after it has ended, so that none
// leaves a step half applied that the chief is about to save. It never blocks and has no thread. Not thread-safe.
class Launcher {
 public:
  struct Options {
    // Must outlive the supervisor.
    Clock* clock = nullptr;
    ProcessTable* processes = nullptr;
    FileSystem* fs = nullptr;
    // The chief's command for an address to listen on; it writes the port that it got to port_file. A chief that is
    // started again is given that port.
    std::function<std::vector<std::string>(const std::string& listen)> chief_command;
    // The command of worker 0, 1, ... for the chief's address.
    std::function<std::vector<std::string>(int worker, const std::string& master)> worker_command;
    int workers = 2;
    // The limit for each process.
    int64_t max_restarts = 10;
    // "host:port", port 0 being any, "unix:/path" or "unix-abstract:name".
    std::string listen = "127.0.0.1:0";
    std::string port_file;
    // The logs are chief.log, worker-0.log, ... in this directory, which must exist.
    std::string log_directory;
    // Receives what happens to the processes, in whole lines without a line feed.
    std::function<void(const std::string&)> say;
    // How long the chief may take to save its last step and exit after a stop signal; then it is killed.
    absl::Duration stop_limit = absl::Seconds(35);
  };
  struct Outcome {
    int exit_code = 0;
    // Why the run failed, in one line, and the log of the process that failed; else empty.
    std::string message;
    std::string log_path;
    // Where in the log the process began to write when it was last started.
    uint64_t log_offset = 0;
  };

  explicit Launcher(Options options);

  // Starts the chief; the workers follow when it listens. Errors: those of the program or of the port file.
  absl::Status Start();
  // Collects the processes that ended, and does what is due.
  void Poll();
  // One of WatchedSignals() reached this process. The first stop signal asks the chief to save its last step and stop;
  // one that means an immediate end, as StopRequests defines it, kills all processes. If the run is ending already, it
  // ends sooner, with the same outcome. The outcome of a stop is kExitTerminated only when the chief says that its last
  // step is saved. A signal that asks for a save is passed on to the chief.
  void OnSignal(int signal);

  // When Poll has something to do, signals aside.
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
    // 0 when it does not run.
    int pid = 0;
    absl::Time started;
    uint64_t log_offset = 0;
    // When it is to be started; never, InfiniteFuture.
    absl::Time start_at = absl::InfiniteFuture();
    // At the end: when it is signalled to stop and when it is killed, and whether it was signalled.
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
  // The chief ends while the run is ending.
  void OnLateChiefEnd(const ProcessExit& exit, const RestartPolicy::Decision& decision);
  // No process is started any more.
  void End(Outcome outcome);
  void Fail(const Child& culprit, int exit_code, const std::string& text);
  // The chief is signalled at `when`, if it runs; the workers after it has ended.
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
  // Where the chief is to listen: options_.listen, with the port once it is known.
  std::string listen_;
  std::string master_;

  bool ending_ = false;
  // How the run ends, once all have; and whether a worker, not the chief, is the cause.
  Outcome end_;
  bool failed_worker_ = false;
  StopRequests stop_requests_;
  absl::optional<Outcome> outcome_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LAUNCHER_LAUNCHER_H_
