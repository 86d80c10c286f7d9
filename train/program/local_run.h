#ifndef LOCKSTEP_TRAIN_PROGRAM_LOCAL_RUN_H_
#define LOCKSTEP_TRAIN_PROGRAM_LOCAL_RUN_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

struct LocalRunOptions {
  // Empty: no checkpoints and no events.
  std::string logdir;
  // Workers, each in a thread of its own.
  int workers = 1;
  // 0: as configured.
  int compute_threads = 0;
  // Chief::Options.
  bool change_settings = false;
  bool new_run = false;
  // Called about twice a second from a thread of its own, and once at the end.
  std::function<void(const v1::RunStatus&)> on_status;
};

struct LocalRunEnd {
  // OK when the last step is saved; Cancelled when the run was terminated and the last step is saved; else why the run
  // failed, or why the last step could not be saved.
  absl::Status status;
  // Of a process that runs nothing else.
  int exit_code = 0;
  // The signal that stopped the run; 0 if none did.
  int stop_signal = 0;
};

// Chief and workers in this process, without a socket: the master ''. Installs a TerminationWatch, so call it
// before any thread is made. After DeadlineExceeded, the disk having taken longer than checkpoint.stop_seconds, the
// chief is still there: end the process.
LocalRunEnd RunLocal(const config::v1::RunSpec& config, const LocalRunOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_PROGRAM_LOCAL_RUN_H_
