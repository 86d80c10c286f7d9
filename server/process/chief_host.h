#ifndef LOCKSTEP_SERVER_PROCESS_CHIEF_HOST_H_
#define LOCKSTEP_SERVER_PROCESS_CHIEF_HOST_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/process/address_file.h"
#include "lockstep/server/process/serve_security.h"

namespace lockstep {

// A chief that other processes can reach until `server` is destroyed.
struct ServedChief {
  // The address that workers connect to.
  std::string address;
  int port = 0;
  // The address that the chief was configured to listen on, with the actual port.
  std::string listening;
  std::shared_ptr<void> server;
};

using ServeFunction = std::function<absl::StatusOr<ServedChief>(const std::string& listen, Chief* chief)>;

struct ServeOptions {
  int step_threads = 2;
  ServeSecurity security;
};

// Returns a function that serves over gRPC. Errors of that function: Unavailable if an address cannot be bound;
// InvalidArgument for invalid `security`.
ServeFunction ServeOverGrpc(const ServeOptions& options = {});

// Returns the period at which a chief with this configuration beats, several times in a lease
// (ChiefOptions::beat_period).
absl::Duration BeatPeriod(const config::v1::RunSpec& config);

// The host of a chief in its process, from the first watch for signals to the exit code. It also runs the chief's
// server and maintains the files that hold its address. A stop signal makes the chief save and end, whatever it is
// doing; a save signal makes it save and continue. Construct it before any other thread starts, so that all threads
// block the signals. Then call Create; Serve, if other processes will connect; Wait; and MarkEnd. The destructor stops
// the server and, unless the disk hangs, waits for the files. For use by one thread.
class ChiefHost {
 public:
  struct Options {
    Chief::Options chief;
    // The maximum time to wait for another chief of the same logdir that is still saving and ending.
    absl::Duration predecessor_limit;
    // If true, Create waits without limit while another chief of the logdir is running, and replaces it once it has
    // been silent for the configured lease.
    bool standby = false;
    // If false, no signals are watched, and the owner calls RequestStop.
    bool watch_signals = true;
    // The addresses that Serve listens on, separated by commas. Port 0 selects any free port.
    std::string listen;
    ServeFunction serve;
    // The ServeOptions::security that `serve` uses, which Create checks.
    ServeSecurity security;
    // The file to write the port to. If empty, the port is not written.
    std::string port_file;
    // Its path and `advertise`. Create sets the other fields.
    AddressFile::Options address_file;
  };

  explicit ChiefHost(Options options);
  ~ChiefHost();

  // Errors: as for CheckServeSecurity, AddressFile::Create and Chief::Create; Cancelled if a signal arrived before
  // there was a chief; InvalidArgument for a standby without a logdir.
  absl::Status Create() ABSL_LOCKS_EXCLUDED(mutex_);
  // Valid after Create.
  Chief* chief() const { return chief_.get(); }
  // Serves the chief. Writes its port to the port file, and its address to the address file. Call it after Create.
  absl::Status Serve();
  // The result of Serve. Empty before that.
  const ServedChief& served() const { return served_; }
  // Calls RunEnds::Wait. Returns DeadlineExceeded (IsDiskHang) if the disk hangs. The caller must then exit the process
  // without destroying any object that may write.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mutex_);
  // If the run is over, writes that to the address file. `run` is the result of Wait. Only the first call has an
  // effect, because later the file may belong to the next chief.
  void MarkEnd(const absl::Status& run);
  // Handles the first stop signal. May be called from any thread before the destructor.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops the run as a signal does, unless the run is over. Meant for failures of the process. May be called from any
  // thread before the destructor.
  void StopRun() ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles SIGUSR1 and SIGUSR2: calls Chief::RequestSave as soon as there is a chief. May be called from any thread
  // before the destructor.
  void RequestSave() ABSL_LOCKS_EXCLUDED(mutex_);

  // Logs that the run is over, at which step, and the reason if it ended early. Call it after Wait has returned OK.
  void LogFinish() const;
  // Returns the first stop signal; 0 if there was none, or if signals are not watched.
  int stop_signal() const { return watch_ ? watch_->stop_signal() : 0; }

  // Returns the exit code for a process that ends with `status`, the result of Create, Wait or the code that serves the
  // chief.
  int ExitCode(const absl::Status& status) const;

 private:
  // Blocks until no chief holds the logdir, the limit has passed, or a stop is requested. If a chief still holds the
  // logdir, Chief::Create reports that.
  void AwaitPredecessor() ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until no chief holds the logdir, the chief that holds it is silent, or a stop is requested. Sets
  // options_.chief.replaces to the generation of the silent chief, if any.
  void StandBy() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits kPredecessorPeriod. Returns false if a stop is requested.
  bool Pause() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls Chief::Create once there is no other chief. A standby retries if another one was faster, or if the disk
  // prevented it from replacing a silent chief.
  absl::StatusOr<std::unique_ptr<Chief>> CreateChief() ABSL_LOCKS_EXCLUDED(mutex_);

  Options options_;
  // True if the disk has not stored the last step in time.
  bool disk_hangs_ = false;
  Mutex mutex_;
  CondVar stop_;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool save_requested_ ABSL_GUARDED_BY(mutex_) = false;
  // Equal to chief_ while a stop may reach it; otherwise null.
  Chief* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::unique_ptr<Chief> chief_;
  // Present from Create to MarkEnd.
  absl::optional<AddressFile> address_file_;
  ServedChief served_;
  // The exit code if a second stop signal ends the process immediately.
  std::atomic<int> second_exit_code_{kExitTerminated};
  // Declared last, so that it is destroyed before everything that its callbacks use.
  absl::optional<TerminationWatch> watch_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PROCESS_CHIEF_HOST_H_
