#ifndef LOCKSTEP_TRAIN_SAVER_SAVER_H_
#define LOCKSTEP_TRAIN_SAVER_SAVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/saver/checkpoint_history.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep::train {

// Observes each save, in the thread that saves. Listeners are called in the order of SaverOptions::listeners.
class SaverListener {
 public:
  virtual ~SaverListener() = default;
  // Called before each save. An error aborts the save before anything is written, and Save returns it.
  virtual absl::Status BeforeSave(absl::optional<int64_t> /*global_step*/) { return absl::OkStatus(); }
  // Called when the checkpoint is on disk and listed in the state file. Save returns any error, but the checkpoint
  // stays.
  virtual absl::Status AfterSave(absl::optional<int64_t> /*global_step*/, const std::string& /*prefix*/) {
    return absl::OkStatus();
  }
  // Called when there will be no more saves.
  virtual absl::Status End(absl::optional<int64_t> /*global_step*/) { return absl::OkStatus(); }
};

struct SaverOptions {
  // The variables to save and restore. If nullopt, all variables that Save receives, and all that a checkpoint
  // contains.
  absl::optional<std::vector<std::string>> var_list;
  // Maps a variable's name to its key in the checkpoint. Variables not listed use their names as keys.
  std::map<std::string, std::string> keys;
  // If true, Restore accepts a different shape with the same number of elements.
  bool reshape = false;
  // Number of newest checkpoints to keep. 0 keeps all, but lists only the newest.
  int64_t max_to_keep = 5;
  // A checkpoint is kept permanently for each period of this many hours. At least 0.
  double keep_checkpoint_every_n_hours = 10000;
  // If true, the prefix ends in "-00000005" instead of "-5".
  bool pad_step_number = false;
  // If true, the state file names checkpoints relative to its directory, so that the directory can be moved.
  bool save_relative_paths = true;
  // Number of data files, over which the variables are spread by size; at most 9999. 0 means one.
  int shards = 0;
  // If true, Save without variables writes nothing, instead of returning an error.
  bool allow_empty = false;
  // Base name of the checkpoints if Save is given only a directory.
  std::string basename = "model.ckpt";
  // Name of the state file, which is in the directory of the checkpoints.
  std::string latest_filename = "checkpoint";
  // If false, Save neither writes the state file nor deletes old checkpoints.
  bool write_state = true;
  // The listeners must outlive the Saver.
  std::vector<SaverListener*> listeners;
  FileSystem* fs = FileSystem::Real();
  // Provides the wall time of each save.
  Clock* clock = Clock::Real();
};

// Writes values as checkpoints, keeps the newest of them, and reads them back. TensorFlow's Saver can read these
// checkpoints, and this class can read those of TensorFlow's Saver.
//
// The options are checked when a Saver is created, and it may be destroyed at any time. Each checkpoint is complete or
// absent, even after a crash. The history covers this Saver's lifetime, unless RecoverHistory restores an earlier one.
// In a run's logdir, a Saver stays separate from the run's own checkpoints: it refuses the names that the chief uses
// there, it marks its checkpoints so that no run resumes from them, and it deletes only checkpoints that a Saver wrote.
// Not thread-safe.
class Saver {
 public:
  // Returns InvalidArgument naming the wrong option.
  static absl::StatusOr<std::unique_ptr<Saver>> Create(SaverOptions options);

  // Writes `path`-<global_step>, or `path` without a step, or into a directory if `path` ends in "/". Lists it as the
  // newest checkpoint, then deletes those beyond max_to_keep. Logs a failed deletion, which the next save retries.
  // Returns the prefix, or "" if there is nothing to save and allow_empty is set.
  // Errors: InvalidArgument if there are no variables, `values` lacks a variable of var_list, two variables have the
  // same key, the directory does not exist, a name collides with the state file's, or a name in a run's logdir is the
  // chief's; those of the file system, after which earlier checkpoints are unchanged; those of the listeners.
  absl::StatusOr<std::string> Save(const std::string& path, absl::optional<int64_t> global_step,
                                   absl::Span<const NamedTensor> values);

  // Returns the values of var_list, in its order. Without var_list, returns the variables of `expected`, if given, or
  // everything in the checkpoint, ordered by key. Ignores other keys in the checkpoint. The variables must have the
  // types and shapes of `expected`.
  // Errors: InvalidArgument if there is no checkpoint at the prefix, or for a wrong shape (with reshape: number of
  // elements) or type; NotFound for a key that the checkpoint lacks; DataLoss for a damaged checkpoint.
  absl::StatusOr<std::vector<NamedTensor>> Restore(const std::string& prefix,
                                                   const v1::ModelSpec* expected = nullptr) const;

  // Returns InvalidArgument if files of this Saver would have the same names as those of a run whose checkpoints are
  // called `run_basename`. Save would then refuse to write to the run's logdir.
  absl::Status CheckBesideRun(absl::string_view run_basename) const;

  // Calls End on all listeners, and returns the first error.
  absl::Status End(absl::optional<int64_t> global_step);

  // Returns the prefixes of the history, oldest first.
  std::vector<std::string> last_checkpoints() const;
  // Set the history. Checkpoints without a time are kept permanently.
  void SetLastCheckpoints(absl::Span<const std::string> prefixes);
  void SetLastCheckpointsWithTimes(std::vector<CheckpointHistory::Entry> checkpoints);
  // Sets the history to those of the given checkpoints, oldest first, whose files exist, with the files' modification
  // times.
  absl::Status RecoverLastCheckpoints(absl::Span<const std::string> prefixes);
  // Like RecoverLastCheckpoints, with the checkpoints in the directory's state file, so that the history survives a
  // restart.
  absl::Status RecoverHistory(const std::string& directory);

  const SaverOptions& options() const { return options_; }

 private:
  explicit Saver(SaverOptions options);
  const std::string& KeyOf(const std::string& variable) const;
  // Returns the values to save, ordered by key, so that equal values produce equal files.
  absl::StatusOr<std::map<std::string, Tensor>> Select(absl::Span<const NamedTensor> values) const;
  // Returns the variables that Restore reads, each with its key.
  std::vector<std::pair<std::string, std::string>> Wanted(const std::vector<std::string>& stored,
                                                          const v1::ModelSpec* expected) const;
  absl::Status CheckPlace(const std::string& directory, const std::string& prefix, bool has_step) const;
  absl::Status WriteState(const std::string& directory, const std::string& newest) const;
  void RemoveDoomed();

  const SaverOptions options_;
  CheckpointHistory history_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_SAVER_H_
