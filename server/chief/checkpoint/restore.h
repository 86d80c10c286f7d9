#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_RESTORE_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_RESTORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/latest_valid.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/ps/variable_store.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

struct RestoreOptions {
  FileSystem* fs = nullptr;
  // If empty, there are no checkpoints, and none will be written.
  std::string logdir;
  // CheckpointManager::Options::base_name.
  std::string checkpoint_basename = kRunBase;
  // Validated, with defaults filled in.
  config::v1::RunSpec config;
  Executor* executor = Executor::Threads();
  // If true, the values are placed in memory that other processes may map.
  bool share_memory = false;
  // The checkpoint of this step may lack the optimizer state of variables that were not trained when it was written.
  // The optimizer initializes that state.
  absl::optional<int64_t> may_lack_state_at;
  // Returns the values to set when nothing is restored. Called after initialization from the seed and a warm start. May
  // be null.
  std::function<absl::StatusOr<std::vector<AssignedValue>>(const v1::ModelSpec&)> initialize;
};

struct RestoredVariables {
  std::unique_ptr<VariableStore> store;
  // The checkpoint that the values come from. Absent if they come from the seed or a warm start.
  absl::optional<std::string> checkpoint;
  // The state of the programs that follow the run, from the checkpoint.
  v1::SessionState session_state;
  // The position of each input stream, from the checkpoint. Empty if batches belong to slots.
  std::vector<int64_t> stream_positions;
  // FailedPrecondition, naming the required and the available memory, if the machine cannot hold an additional version
  // for clients that read variables.
  absl::Status read_memory;
  // The memory that the chief needs at most, and the limit that it was compared with, in bytes.
  uint64_t memory_needed = 0, memory_limit = 0;
  // The newer checkpoints that were skipped because they are damaged, and why.
  std::vector<std::pair<std::string, absl::Status>> damaged;
};

// Returns the variables of a run. First start, resume and recovery share this code path: it restores the newest
// undamaged checkpoint of the logdir. Without a checkpoint, it initializes from the seed and, if the configuration
// names one, from the checkpoint of another run.
// Errors: InvalidArgument for an invalid model or optimizer, and for a warm start from a run that shares no variable;
// ResourceExhausted if the variables do not fit into memory; DataLoss if all checkpoints are damaged;
// FailedPrecondition if a user's Saver wrote all checkpoints of the logdir, or if the run reads input streams and the
// checkpoint lacks their positions; file system errors.
absl::StatusOr<RestoredVariables> RestoreOrInitialize(const RestoreOptions& options, const v1::ModelSpec& model);

// Returns OK if RestoreOrInitialize can create the model's variables while a worker's initial values for them are in
// memory, too. Allocates nothing. Errors: InvalidArgument and ResourceExhausted as above.
absl::Status CheckBroughtValuesFit(const RestoreOptions& options, const v1::ModelSpec& model);

// Returns the state of the programs that follow the run, as stored in its checkpoint. Errors: DataLoss.
absl::StatusOr<v1::SessionState> ReadSessionState(const BundleReader& reader);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_RESTORE_H_
