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

double SecondsOf(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }
absl::Time TimeOf(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

}  // namespace

CheckpointManager::CheckpointManager(FileSystem* fs, Options options)
    : fs_(fs), options_(std::move(options)), last_preserved_(WallTime()) {}

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
  // Even if the clock was set back, the recorded time must not lie in the future.
  const absl::Time now = WallTime();
  if (state.last_preserved_timestamp() > 0) last_preserved_ = std::min(now, TimeOf(state.last_preserved_timestamp()));
  std::set<std::string> kept;
  const auto& listed = state.all_model_checkpoint_paths();
  const bool has_times = state.all_model_checkpoint_timestamps_size() == listed.size();
  // If an entry is listed twice, the later one counts.
  for (int i = listed.size() - 1; i >= 0; --i) {
    // Compares base names only: an entry with a different directory is either the same checkpoint, spelled differently
    // or moved since, or not ours to delete.
    const std::string name(Basename(listed[i]));
    if (names.count(IndexPath(name)) == 0 || !kept.insert(name).second) continue;
    ASSIGN_OR_RETURN(const bool is_savers, IsWrittenBySaver(fs_, PathOf(name)));
    if (is_savers) continue;
    kept_.push_back({name, has_times ? std::min(now, TimeOf(state.all_model_checkpoint_timestamps(i))) : now});
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
  const auto place_of = [this](const std::string& name) {
    return std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.name == name; });
  };
  if (const auto listed = place_of(name); listed != kept_.end()) kept_.erase(listed);
  doomed_.erase(std::remove(doomed_.begin(), doomed_.end(), name), doomed_.end());
  kept_.insert(is_newest ? kept_.end() : place_of(newest_), Kept{name, WallTime()});
  while (kept_.size() > static_cast<uint64_t>(options_.max_to_keep)) DropOldest();
  RETURN_IF_ERROR(WriteState());
  RemoveDoomed();
  return absl::OkStatus();
}

void CheckpointManager::DropOldest() {
  Kept& oldest = kept_.front();
  if (oldest.recorded - last_preserved_ >= options_.keep_every) {
    last_preserved_ = oldest.recorded;
  } else {
    doomed_.push_back(std::move(oldest.name));
  }
  kept_.erase(kept_.begin());
}

absl::Status CheckpointManager::WriteState() const {
  v1::CheckpointState times;
  if (options_.keep_every < absl::InfiniteDuration()) {
    times.set_last_preserved_timestamp(SecondsOf(last_preserved_));
    for (const Kept& kept : kept_) times.add_all_model_checkpoint_timestamps(SecondsOf(kept.recorded));
  }
  return WriteCheckpointState(fs_, options_.directory, PathOf(newest_), checkpoints(), std::move(times));
}

absl::Time CheckpointManager::WallTime() const {
  return options_.keep_every < absl::InfiniteDuration() ? options_.clock->WallTime() : absl::UnixEpoch();
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
  for (const Kept& kept : kept_) prefixes.push_back(PathOf(kept.name));
  return prefixes;
}

}  // namespace lockstep
