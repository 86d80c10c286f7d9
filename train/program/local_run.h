#ifndef LOCKSTEP_TRAIN_PROGRAM_LOCAL_RUN_H_
#define LOCKSTEP_TRAIN_PROGRAM_LOCAL_RUN_H_

#include <functional>

#include "absl/status/status.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/chief/program_options.h"
#include "lockstep/v1/status.pb.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep {

// The options of the chief, and of the workers in its process.
struct LocalRunOptions : ProgramOptions {
  // The number of workers, each in its own thread.
  int workers = 1;
  // The options of each worker's workload. With a logdir, RunLocal sets their index_directory.
  WorkloadOptions workload;
  // Called about twice a second from a separate thread, and once at the end.
  std::function<void(const v1::RunStatus&)> on_status;
};

struct LocalRunEnd {
  // OK if the last step is saved; Cancelled if the run was terminated and the last step is saved; otherwise the reason
  // why the run failed or why the last step could not be saved.
  absl::Status status;
  // The exit code for a process that runs nothing else.
  int exit_code = 0;
  // The signal that stopped the run; 0 if none did.
  int stop_signal = 0;
};

// Runs the chief and the workers in this process, without a socket (master ''). Must be called before any thread is
// created, because it installs a TerminationWatch. After DeadlineExceeded (the disk took longer than
// checkpoint.stop_seconds), the chief still exists, and the caller must end the process.
LocalRunEnd RunLocal(const config::v1::RunSpec& config, const LocalRunOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_PROGRAM_LOCAL_RUN_H_
