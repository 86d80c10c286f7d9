#include "lockstep/server/chief/checkpoint/checkpoint_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/bundle/bundle_header.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"

namespace lockstep {
namespace {

// Removes `value` from `list` if present.
void Erase(const std::string& value, std::vector<std::string>* list) {
  list->erase(std::remove(list->begin(), list->end(), value), list->end());
}

}  // namespace

CheckpointManager::CheckpointManager(FileSystem* fs, Options options) : fs_(fs), options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<CheckpointManager>> CheckpointManager::Create(FileSystem* fs, Options options) {
  if (options.max_to_keep < 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot keep ", options.max_to_keep, " checkpoints"));
  }
  std::unique_ptr<CheckpointManager> manager(new CheckpointManager(fs, std::move(options)));
  const std::string& directory = manager->options_.directory;
  ASSIGN_OR_RETURN(const absl::optional<v1::CheckpointState> state, ReadCheckpointState(fs, directory));
  ASSIGN_OR_RETURN(const std::vector<std::string> listed, fs->ListDirectory(directory));
  const std::set<std::string> names(listed.begin(), listed.end());
  RETURN_IF_ERROR(manager->Recover(state.value_or(v1::CheckpointState()), names));
  manager->RemoveLeftovers(state.value_or(v1::CheckpointState()), names);
  return manager;
}

std::string CheckpointManager::PrefixOf(int64_t step) const {
  return PathOf(absl::StrCat(options_.base_name, "-", step));
}

absl::Status CheckpointManager::Recover(const v1::CheckpointState& state, const std::set<std::string>& names) {
  found_newest_ = std::string(Basename(state.model_checkpoint_path()));
  ASSIGN_OR_RETURN(const bool of_saver, IsWrittenBySaver(fs_, PathOf(found_newest_)));
  if (of_saver) found_newest_.clear();
  if (options_.max_to_keep == 0) return absl::OkStatus();
  std::set<std::string> kept;
  const auto& listed = state.all_model_checkpoint_paths();
  // If an entry is listed twice, the later one counts.
  for (auto prefix = listed.rbegin(); prefix != listed.rend(); ++prefix) {
    // Compares base names only: an entry with another directory is the same checkpoint under another spelling or before
    // a move, or it is not ours to delete.
    const std::string name(Basename(*prefix));
    if (names.count(IndexPath(name)) == 0 || !kept.insert(name).second) continue;
    ASSIGN_OR_RETURN(const bool is_savers, IsWrittenBySaver(fs_, PathOf(name)));
    if (is_savers) continue;
    kept_.push_back(name);
  }
  std::reverse(kept_.begin(), kept_.end());
  return absl::OkStatus();
}

void CheckpointManager::RemoveLeftovers(const v1::CheckpointState& state, const std::set<std::string>& names) {
  // Keeps the data of listed checkpoints: the index may be only temporarily invisible, and the data could not be
  // recovered.
  std::set<absl::string_view> wanted = {Basename(state.model_checkpoint_path())};
  for (const std::string& prefix : state.all_model_checkpoint_paths()) wanted.insert(Basename(prefix));
  for (const std::string& name : names) {
    absl::string_view rest = name;
    const bool temporary = absl::ConsumeSuffix(&rest, ".tmp");
    // "model.ckpt-12.data-00000-of-00001" or "model.ckpt-12.index".
    const size_t dot = rest.rfind('.');
    const absl::string_view checkpoint = rest.substr(0, dot);
    const absl::optional<int64_t> step = StepOfCheckpoint(checkpoint);
    if (!step.has_value() || checkpoint != Basename(PrefixOf(*step))) continue;
    const bool is_data = IsDataFileOf(checkpoint, rest);
    const bool incomplete = names.count(IndexPath(checkpoint)) == 0 && wanted.count(checkpoint) == 0;
    if (!(temporary ? is_data || rest.substr(dot) == ".index" : is_data && incomplete)) continue;
    const absl::Status status = fs_->Remove(PathOf(name));
    if (!status.ok()) LOG(WARNING) << "A half-written file stays: " << status;
  }
}

absl::Status CheckpointManager::Record(const std::string& prefix) {
  const std::string name(Basename(prefix));
  ASSIGN_OR_RETURN(const bool exists, CheckpointExists(fs_, PathOf(name)));
  if (!exists) {
    return absl::NotFoundError(absl::StrCat("no checkpoint ", prefix, " in ", options_.directory));
  }
  if (options_.may_record) RETURN_IF_ERROR(options_.may_record());
  const absl::optional<int64_t> step = StepOfCheckpoint(name);
  const bool is_newest = !step.has_value() || !newest_step_.has_value() || *step >= *newest_step_;
  if (is_newest) {
    newest_ = name;
    newest_step_ = step;
  }
  if (options_.max_to_keep == 0) return WriteCheckpointState(fs_, options_.directory, PathOf(newest_), {});
  Erase(name, &kept_);
  Erase(name, &doomed_);
  kept_.insert(is_newest ? kept_.end() : std::find(kept_.begin(), kept_.end(), newest_), name);
  while (kept_.size() > static_cast<uint64_t>(options_.max_to_keep)) {
    doomed_.push_back(kept_.front());
    kept_.erase(kept_.begin());
  }
  RETURN_IF_ERROR(WriteCheckpointState(fs_, options_.directory, PathOf(newest_), checkpoints()));
  RemoveDoomed();
  return absl::OkStatus();
}

absl::Status CheckpointManager::Adopt(const std::string& prefix) {
  const absl::optional<int64_t> found = StepOfCheckpoint(found_newest_);
  const absl::optional<int64_t> step = StepOfCheckpoint(prefix);
  const bool listed = !found_newest_.empty() && (!found.has_value() || !step.has_value() || *step <= *found);
  return listed ? absl::OkStatus() : Record(prefix);
}

void CheckpointManager::RemoveDoomed() {
  std::vector<std::string> remaining;
  for (const std::string& name : doomed_) {
    const absl::Status status = RemoveCheckpoint(fs_, PathOf(name));
    if (status.ok()) continue;
    LOG(WARNING) << "Checkpoint " << PathOf(name) << " is not deleted yet: " << status;
    remaining.push_back(name);
  }
  doomed_ = std::move(remaining);
}

std::vector<std::string> CheckpointManager::checkpoints() const {
  std::vector<std::string> prefixes;
  for (const std::string& name : kept_) prefixes.push_back(PathOf(name));
  return prefixes;
}

}  // namespace lockstep
