#ifndef LOCKSTEP_CLI_LOCAL_RUN_H_
#define LOCKSTEP_CLI_LOCAL_RUN_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "proto/config.pb.h"
#include "proto/status.pb.h"

namespace lockstep {

struct LocalRunOptions {
  // Empty: no checkpoints and no events.
  std::string logdir;
  // Workers, each in a thread of its own.
  int workers = 1;
  // 0: as configured.
  int compute_threads = 0;
  // Called about twice a second from a thread of its own, and once at the end.
  std::function<void(const RunStatus&)> on_status;
};

// Chief and workers in this process, without a socket: the master ''. Installs a TerminationWatch, so call it
// before any thread is made.
// Returns OK when the last step is saved; Cancelled when it was terminated and the last step is saved; else why the run
// failed, or why the last step could not be saved. After DeadlineExceeded, the disk having taken longer than
// checkpoint.stop_seconds, the chief is still there: end the process.
absl::Status RunLocal(const RunConfig& config, const LocalRunOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LOCAL_RUN_H_
