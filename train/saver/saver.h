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

// Receives each save, in the thread that saves, in the order of SaverOptions::listeners.
class SaverListener {
 public:
  virtual ~SaverListener() = default;
  // An error ends the save before anything is written, and Save returns it.
  virtual absl::Status BeforeSave(absl::optional<int64_t> /*global_step*/) { return absl::OkStatus(); }
  // Called when the checkpoint is on the disk and listed. Save returns the error; the checkpoint stays.
  virtual absl::Status AfterSave(absl::optional<int64_t> /*global_step*/, const std::string& /*prefix*/) {
    return absl::OkStatus();
  }
  // Called when there will be no more saves.
  virtual absl::Status End(absl::optional<int64_t> /*global_step*/) { return absl::OkStatus(); }
};

struct SaverOptions {
  // The variables to save and restore. If nullopt, all that Save receives, and all that a checkpoint has.
  absl::optional<std::vector<std::string>> var_list;
  // Maps a variable's name to its key in the checkpoint. Other variables have their names as keys.
  std::map<std::string, std::string> keys;
  // If true, Restore accepts another shape with as many elements.
  bool reshape = false;
  // The number of newest checkpoints to keep. 0 keeps all and lists only the newest.
  int64_t max_to_keep = 5;
  // Keeps one checkpoint of each such period permanently. At least 0.
  double keep_checkpoint_every_n_hours = 10000;
  // If true, the prefix ends in "-00000005" instead of "-5".
  bool pad_step_number = false;
  // If true, the state file names checkpoints in its directory without the directory, so that it can be moved.
  bool save_relative_paths = true;
  // The number of data files, over which the variables are spread by size; at most 9999. If 0, there is one.
  int shards = 0;
  // If true, Save without variables writes nothing, instead of returning an error.
  bool allow_empty = false;
  // The name of checkpoints if Save receives a directory.
  std::string basename = "model.ckpt";
  // The name of the state file, next to the checkpoints.
  std::string latest_filename = "checkpoint";
  // If false, Save writes no state file: nothing is listed, and nothing is deleted.
  bool write_state = true;
  // They must outlive the Saver.
  std::vector<SaverListener*> listeners;
  FileSystem* fs = FileSystem::Real();
  // Its wall time is the time of a save.
  Clock* clock = Clock::Real();
};

// Writes values as checkpoints, keeps the newest of them, and reads them back. TensorFlow's Saver reads what it writes,
// and it reads what TensorFlow's wrote.
// Its options are checked when it is created, and it may be destroyed at any time. Each checkpoint is complete or
// absent, even after a crash. The history covers this Saver's lifetime, unless RecoverHistory brings back an earlier
// one.
// In the logdir of a run it keeps apart from the run's own checkpoints: it refuses the names that the chief uses there,
// it marks its checkpoints so that no run resumes from one, and it deletes none that no Saver wrote.
// Not thread-safe.
class Saver {
 public:
  // Returns InvalidArgument, which names the option that is wrong.
  static absl::StatusOr<std::unique_ptr<Saver>> Create(SaverOptions options);

  // Writes `path`-<global_step>, or `path` without a step; in a directory if `path` ends in "/". Lists it as the
  // newest, then deletes those beyond max_to_keep; a deletion that fails is logged, and the next save tries it again.
  // Returns the prefix; "" if there is nothing to save and allow_empty.
  // Errors: InvalidArgument if there are no variables, `values` lacks one of var_list, two have one key, the directory
  // does not exist, a name collides with that of the state file, or a name in a run's logdir is the chief's; those of
  // the file system, after which the earlier checkpoints are unchanged; those of the listeners.
  absl::StatusOr<std::string> Save(const std::string& path, absl::optional<int64_t> global_step,
                                   absl::Span<const NamedTensor> values);

  // Returns the values of var_list, in its order. Without var_list, returns those of `expected`, if given, or all of
  // the checkpoint by key. Ignores other keys of the checkpoint. The variables must have the types and shapes of
  // `expected`.
  // Errors: InvalidArgument without a checkpoint at the prefix, and for another shape (with reshape: another number of
  // elements) or type; NotFound for a key that it lacks; DataLoss for a damaged one.
  absl::StatusOr<std::vector<NamedTensor>> Restore(const std::string& prefix,
                                                   const v1::ModelSpec* expected = nullptr) const;

  // Returns InvalidArgument if the names of its files are those of a run whose checkpoints are called `run_basename`:
  // Save would refuse to write into the logdir.
  absl::Status CheckBesideRun(absl::string_view run_basename) const;

  // Calls End of all listeners, and returns the first error.
  absl::Status End(absl::optional<int64_t> global_step);

  // Returns prefixes, oldest first.
  std::vector<std::string> last_checkpoints() const;
  // Sets the history. Without times, each checkpoint is kept permanently.
  void SetLastCheckpoints(absl::Span<const std::string> prefixes);
  void SetLastCheckpointsWithTimes(std::vector<CheckpointHistory::Entry> checkpoints);
  // Sets the history to the prefixes, oldest first, whose files exist, with the times of their files.
  absl::Status RecoverLastCheckpoints(absl::Span<const std::string> prefixes);
  // As RecoverLastCheckpoints, with the list of the directory's state file: the history survives a restart.
  absl::Status RecoverHistory(const std::string& directory);

  const SaverOptions& options() const { return options_; }

 private:
  explicit Saver(SaverOptions options);
  const std::string& KeyOf(const std::string& variable) const;
  // Returns the values to save by key, so that equal values make equal files.
  absl::StatusOr<std::map<std::string, Tensor>> Select(absl::Span<const NamedTensor> values) const;
  // Returns what Restore reads: each variable with its key.
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
