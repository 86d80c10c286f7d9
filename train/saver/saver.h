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

// Is told of each save. Called by the thread that saves, in the order of SaverOptions::listeners.
class SaverListener {
 public:
  virtual ~SaverListener() = default;
  // An error ends the save before anything is written, and is what Save returns.
  virtual absl::Status BeforeSave(absl::optional<int64_t> /*global_step*/) { return absl::OkStatus(); }
  // The checkpoint is on the disk and listed. Save returns the error; the checkpoint stays.
  virtual absl::Status AfterSave(absl::optional<int64_t> /*global_step*/, const std::string& /*prefix*/) {
    return absl::OkStatus();
  }
  // There will be no more saves.
  virtual absl::Status End(absl::optional<int64_t> /*global_step*/) { return absl::OkStatus(); }
};

struct SaverOptions {
  // What is saved and restored. nullopt: all that Save is given, all that a checkpoint has.
  absl::optional<std::vector<std::string>> var_list;
  // A variable's name to its key in the checkpoint. The others have their names.
  std::map<std::string, std::string> keys;
  // Restore takes another shape with as many elements.
  bool reshape = false;
  // The newest this many stay. 0 keeps all and lists only the newest.
  int64_t max_to_keep = 5;
  // One checkpoint of each such period is kept for good. At least 0.
  double keep_checkpoint_every_n_hours = 10000;
  // "-00000005" in place of "-5".
  bool pad_step_number = false;
  // The state file names what lies in its directory without the directory, so that it can be moved.
  bool save_relative_paths = true;
  // 0: one data file. N: N data files, over which the variables are spread by size. At most 9999.
  int shards = 0;
  // Without variables Save writes nothing, in place of an error.
  bool allow_empty = false;
  // What checkpoints are called when Save is given a directory.
  std::string basename = "model.ckpt";
  // The state file's name, beside the checkpoints.
  std::string latest_filename = "checkpoint";
  // Whether Save writes the state file. Without it nothing is listed, and nothing is deleted.
  bool write_state = true;
  // They outlive the Saver.
  std::vector<SaverListener*> listeners;
  FileSystem* fs = FileSystem::Real();
  // Its wall time is that of saves.
  Clock* clock = Clock::Real();
};

// Writes values that it is given as checkpoints, keeps the newest of them, and reads them back. TensorFlow's Saver
// reads what it writes, and it reads what TensorFlow's wrote.
// It is made with options that are checked, and it may be dropped at any time. Each checkpoint is whole or absent,
// through a crash as well. The history is of this Saver's life, unless RecoverHistory brings an earlier one's.
// Beside a run's own checkpoints in a logdir it keeps apart: it refuses the names that the chief uses there, its
// checkpoints are marked, so that no run resumes from one, and it deletes none there that it did not write.
// Not thread-safe.
class Saver {
 public:
  // InvalidArgument names the option that is wrong.
  static absl::StatusOr<std::unique_ptr<Saver>> Create(SaverOptions options);

  // Writes `path`-<global_step>, or `path` without a step; in a directory when `path` ends in "/". Lists it as the
  // newest, then deletes those beyond max_to_keep; a deletion that fails is logged and tried again with the next save.
  // Returns the prefix; "" when there is nothing to save and allow_empty.
  // Errors: InvalidArgument for no variables, one that var_list names and `values` lacks, two of one key, a directory
  // that does not exist, a name that collides with the state file's, or a name that is the chief's in a run's logdir;
  // those of the file system, and then the earlier checkpoints are as they were; those of the listeners.
  absl::StatusOr<std::string> Save(const std::string& path, absl::optional<int64_t> global_step,
                                   absl::Span<const NamedTensor> values);

  // The values of var_list, in its order; without one those of `expected`, if given, or all of the checkpoint by key.
  // What else the checkpoint holds is ignored. `expected` says which types and shapes the variables must have.
  // Errors: InvalidArgument without a checkpoint at the prefix, and for another shape (with reshape: another number of
  // elements) or type; NotFound for a key that it lacks; DataLoss for a damaged one.
  absl::StatusOr<std::vector<NamedTensor>> Restore(const std::string& prefix,
                                                   const v1::ModelSpec* expected = nullptr) const;

  // InvalidArgument if the names of its files are those of a run, whose checkpoints are called `run_basename`: Save
  // would refuse to write into the logdir.
  absl::Status CheckBesideRun(absl::string_view run_basename) const;

  // Tells the listeners. Returns the first error; all are told.
  absl::Status End(absl::optional<int64_t> global_step);

  // Prefixes, oldest first.
  std::vector<std::string> last_checkpoints() const;
  // With times that keep each of them for good.
  void SetLastCheckpoints(absl::Span<const std::string> prefixes);
  void SetLastCheckpointsWithTimes(std::vector<CheckpointHistory::Entry> checkpoints);
  // Those of the prefixes, oldest first, whose files exist, with the times of their files.
  absl::Status RecoverLastCheckpoints(absl::Span<const std::string> prefixes);
  // The same with what the state file of the directory lists: the history survives a restart.
  absl::Status RecoverHistory(const std::string& directory);

  const SaverOptions& options() const { return options_; }

 private:
  explicit Saver(SaverOptions options);
  const std::string& KeyOf(const std::string& variable) const;
  // By key, so that equal values make equal files.
  absl::StatusOr<std::map<std::string, Tensor>> Select(absl::Span<const NamedTensor> values) const;
  // What Restore reads: each variable with its key.
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
