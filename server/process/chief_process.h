#ifndef LOCKSTEP_SERVER_PROCESS_CHIEF_PROCESS_H_
#define LOCKSTEP_SERVER_PROCESS_CHIEF_PROCESS_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/server/chief/chief.h"

namespace lockstep {

// The life of a chief in a process, however it is served: from the first watch for signals to the exit code. A signal
// that means a stop makes the chief save and end, whatever it does at that moment; one that means a save makes it save
// and continue. Life: construct it before any other thread, so that all block the signals; Create; serve chief(); Wait;
// end what serves; destroy it, which waits for the files, unless the disk hangs. For one thread.
class ChiefProcess {
 public:
  struct Options {
    Chief::Options chief;
    // How long to wait for another chief of the same logdir that is still ending, as it saves.
    absl::Duration predecessor_limit;
    // False: no signal is watched for; who started it calls RequestStop.
    bool watch_signals = true;
  };

  explicit ChiefProcess(Options options);
  ~ChiefProcess();

  // Errors: those of Chief::Create; Cancelled when a signal came before there was a chief.
  absl::Status Create() ABSL_LOCKS_EXCLUDED(mutex_);
  // After Create.
  Chief* chief() const { return chief_.get(); }
  // RunEnds::Wait. After DeadlineExceeded, which IsDiskHang, the disk hangs: end the process, and destroy nothing that
  // may write.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mutex_);
  // What the first stop signal does. From any thread, before the destructor.
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);
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
  // Of a process that is ended at once.
  std::atomic<int> second_exit_code_{kExitTerminated};
  // Ends before all that its callbacks use.
  absl::optional<TerminationWatch> watch_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PROCESS_CHIEF_PROCESS_H_
