#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_RESTORE_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_RESTORE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

struct RestoreOptions {
  FileSystem* fs = nullptr;
  // Empty: there are no checkpoints, and none will be made.
  std::string logdir;
  // Validated, with defaults filled in.
  config::v1::RunSpec config;
  Executor* executor = Executor::Threads();
  // The values lie in memory that other processes may map.
  bool share_memory = false;
  // Called when nothing is restored, after the seed and a warm start: values to set. Null: none.
  std::function<absl::StatusOr<std::vector<AssignedValue>>(const v1::ModelSpec&)> initialize;
};

struct RestoredVariables {
  std::unique_ptr<VariableStore> store;
  // The checkpoint that they come from; nullopt: the seed, or a warm start.
  absl::optional<std::string> checkpoint;
  // What the checkpoint keeps for the programs that follow the run.
  v1::SessionState session_state;
  // FailedPrecondition, with both numbers, when the machine cannot hold one version more for those that read variables.
  absl::Status read_memory;
};

// The variables of a run, by the one path of first start, resume and recovery: from the newest checkpoint of the logdir
// that is not damaged; without one from the seed and, if the configuration names one, from the checkpoint of another
// run.
// Errors: InvalidArgument for a wrong model or optimizer, and for a warm start from a run that shares no variable;
// ResourceExhausted when they do not fit into memory; DataLoss when all checkpoints are damaged; FailedPrecondition
// when the logdir's checkpoints are all a user's Saver's; those of the file system.
absl::StatusOr<RestoredVariables> RestoreOrInitialize(const RestoreOptions& options, const v1::ModelSpec& model);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_RESTORE_H_
