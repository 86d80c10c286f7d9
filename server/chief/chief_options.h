#ifndef LOCKSTEP_SERVER_CHIEF_CHIEF_OPTIONS_H_
#define LOCKSTEP_SERVER_CHIEF_CHIEF_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/system_random.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/contract/build_info.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/chief/program_options.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// The parts of its process and machine that a chief uses. Tests and the simulation substitute fakes.
struct ChiefMachine {
  Executor* executor = Executor::Threads();
  // Names of the machine and the program, for log messages.
  std::string host = HostName();
  v1::BuildInfo build = ThisBuildInfo();
  // Draws the ids of sessions and reads, which must be unpredictable.
  std::function<uint64_t()> draw_session_id = SystemRandom64;
  // Draws the id of a new run.
  std::function<uint64_t()> draw_run_id = SystemRandom64;
  // See SyncReplicas::Options.
  int64_t old_version_bytes = SyncReplicas::kOldVersionBytes;
};

// The options of a chief. The parts of a chief read them here, so that no field is copied from one struct to the next.
struct ChiefOptions : ProgramOptions {
  // If true, the chief keeps the run's history in the logdir (RunJournal::kFileName), and its successor continues it.
  bool write_journal = false;
  // Validated, with defaults filled in.
  config::v1::RunSpec config;
  ChiefMachine machine;
  // The generation of a silent chief that holds the logdir (PredecessorWatch). This chief replaces it.
  absl::optional<int64_t> replaces;
  // The period at which the chief shows standbys that it is running, and checks whether one has replaced it. If zero,
  // it does neither, and is never replaced.
  absl::Duration beat_period;
  // If true, workers on this machine may share memory with the chief.
  bool share_memory = false;
  // If true, a program follows the run (train::Session): no step begins before the program's call of SetLimit, and
  // checkpoints hold the program's state.
  bool followed = false;
  // RestoreOptions::initialize.
  std::function<absl::StatusOr<std::vector<AssignedValue>>(const v1::ModelSpec&)> initialize;
  // Creates the model that the program's workers will declare. Create calls it if the run continues after it has
  // finished, because the program may then train other variables. If this is null, or returns an error, which is
  // logged, the trained variables stay the same.
  std::function<absl::StatusOr<v1::ModelSpec>()> model;
  // Called by Create after it has verified that the logdir belongs to this chief and this run, and before the restore,
  // which may take a long time. Create returns its errors.
  std::function<absl::Status()> on_accepted;
  // Receives the error of a checkpoint that was due by time or step and that no caller waits for. Called by the writing
  // thread, from Create to the destructor. If null, the error is only logged, and the next checkpoint is written when
  // it is due.
  std::function<void(absl::Status)> on_save_failed;
  // The period at which leases, timers and log lines are checked. If zero, only calls to Housekeep check them (tests).
  // When a worker hangs, its step may wait this much longer for a backup copy of the worker's block.
  absl::Duration housekeeping_period = absl::Milliseconds(10);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHIEF_OPTIONS_H_
