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
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/process/address_file.h"

namespace lockstep {

// A chief that other processes reach until `server` is destroyed.
struct ServedChief {
  // The address that workers connect to.
  std::string address;
  int port = 0;
  // The address that it was told to listen on, with that port in it.
  std::string listening;
  std::shared_ptr<void> server;
};

using ServeFunction = std::function<absl::StatusOr<ServedChief>(const std::string& listen, Chief* chief)>;

// Returns a function that serves over gRPC. Its errors: Unavailable when an address cannot be bound.
ServeFunction ServeOverGrpc(int step_threads = 2);

// The life of a chief in a process, from the first watch for signals to the exit code: its server, and the files that
// tell others where it is. A signal that means a stop makes the chief save and end, whatever it does at that moment;
// one that means a save makes it save and continue. Life: construct it before any other thread, so that all block the
// signals; Create; Serve, if other processes are to connect; Wait; MarkEnd; destroy it, which ends the server and waits
// for the files, unless the disk hangs. For one thread.
class ChiefHost {
 public:
  struct Options {
    Chief::Options chief;
    // How long to wait for another chief of the same logdir that is still ending, as it saves.
    absl::Duration predecessor_limit;
    // If false, no signal is watched for, and the owner calls RequestStop.
    bool watch_signals = true;
    // Where Serve lets workers connect: several, separated by commas; port 0 takes any.
    std::string listen;
    ServeFunction serve;
    // The file that gets the port; empty: none.
    std::string port_file;
    // AddressFile::Options::path and advertise.
    std::string address_file;
    std::string advertise;
  };

  explicit ChiefHost(Options options);
  ~ChiefHost();

  // Errors: those of AddressFile::Create and Chief::Create; Cancelled when a signal came before there was a chief.
  absl::Status Create() ABSL_LOCKS_EXCLUDED(mutex_);
  // After Create.
  Chief* chief() const { return chief_.get(); }
  // Serves the chief, and writes where into the port file and the address file. After Create.
  absl::Status Serve();
  // What Serve has made; empty before.
  const ServedChief& served() const { return served_; }
  // RunEnds::Wait. After DeadlineExceeded, which IsDiskHang, the disk hangs: end the process, and destroy nothing that
  // may write.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mutex_);
  // `run` is the result of Wait: if the run is over, the address file says so. Only the first call does anything: later
  // the file may be the next chief's.
  void MarkEnd(const absl::Status& run);
  // What the first stop signal does. From any thread, before the destructor.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops the run as a signal does, unless it is over: a failure of the process. From any thread, before the
  // destructor.
  void StopRun() ABSL_LOCKS_EXCLUDED(mutex_);
  // What SIGUSR1 and SIGUSR2 do: Chief::RequestSave, as soon as there is a chief. From any thread, before the
  // destructor.
  void RequestSave() ABSL_LOCKS_EXCLUDED(mutex_);

  // For a process that ends with `status`, from Create, Wait or what serves the chief.
  int ExitCode(const absl::Status& status) const;

 private:
  // Until no chief holds the logdir, the limit or a stop. One that stays is for Chief::Create to name.
  void AwaitPredecessor() ABSL_LOCKS_EXCLUDED(mutex_);

  Options options_;
  // The disk has not taken the last step in time.
  bool disk_hangs_ = false;
  Mutex mutex_;
  CondVar stop_;
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool save_requested_ ABSL_GUARDED_BY(mutex_) = false;
  // chief_ as long as a stop may reach it.
  Chief* running_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::unique_ptr<Chief> chief_;
  // From Create to MarkEnd.
  absl::optional<AddressFile> address_file_;
  ServedChief served_;
  // Of a process that is ended at once.
  std::atomic<int> second_exit_code_{kExitTerminated};
  // Ends before all that its callbacks use.
  absl::optional<TerminationWatch> watch_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PROCESS_CHIEF_HOST_H_
