#include "common/checkpoint/latest_valid.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/bundle_reader.h"
#include "common/checkpoint/checkpoint_state.h"

namespace lockstep {
namespace {

// "a/model.ckpt-12" to "model.ckpt".
absl::string_view BaseOf(absl::string_view prefix) {
  const absl::string_view name = Basename(prefix);
  return StepOfCheckpoint(prefix).has_value() ? name.substr(0, name.rfind('-')) : name;
}

// Step to prefix of the checkpoints in the directory.
absl::StatusOr<std::map<int64_t, std::string>> FindInDirectory(FileSystem* fs, const std::string& directory,
                                                               absl::string_view base) {
  std::map<int64_t, std::string> found;
  const auto names = fs->ListDirectory(directory);
  if (absl::IsNotFound(names.status())) return found;
  RETURN_IF_ERROR(names.status());
  for (absl::string_view name : *names) {
    if (!absl::ConsumeSuffix(&name, ".index")) continue;
    const absl::optional<int64_t> step = StepOfCheckpoint(name);
    if (step.has_value() && BaseOf(name) == base) found[*step] = JoinPath(directory, name);
  }
  return found;
}

// In the order of the header, each once.
absl::StatusOr<std::vector<std::string>> Candidates(FileSystem* fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const absl::optional<CheckpointState> state, ReadCheckpointState(fs, directory));
  const std::string choice = state.has_value() ? state->model_checkpoint_path() : "";
  ASSIGN_OR_RETURN(const auto found, FindInDirectory(fs, directory, state.has_value() ? BaseOf(choice) : "model.ckpt"));
  std::vector<std::string> candidates;
  const auto add = [&candidates](const std::string& prefix) {
    if (std::find(candidates.begin(), candidates.end(), prefix) == candidates.end()) candidates.push_back(prefix);
  };
  if (state.has_value()) {
    add(choice);
    const auto& listed = state->all_model_checkpoint_paths();
    const absl::optional<int64_t> chosen_step = StepOfCheckpoint(choice);
    for (auto it = found.rbegin(); it != found.rend() && chosen_step.has_value() && it->first > *chosen_step; ++it) {
      if (std::find(listed.begin(), listed.end(), it->second) == listed.end()) add(it->second);
    }
    for (auto it = listed.rbegin(); it != listed.rend(); ++it) add(*it);
  }
  for (auto it = found.rbegin(); it != found.rend(); ++it) add(it->second);
  return candidates;
}

absl::Status Verify(FileSystem* fs, const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(fs, prefix));
  return reader->Verify();
}

}  // namespace

absl::StatusOr<absl::optional<std::string>> NewestValidCheckpoint(
    FileSystem* fs, const std::string& directory,
    absl::FunctionRef<void(const std::string& prefix, const absl::Status& damage)> report) {
  ASSIGN_OR_RETURN(const std::vector<std::string> candidates, Candidates(fs, directory));
  std::vector<absl::Status> damages(candidates.size());
  size_t valid = candidates.size();
  for (int look = 0; look < 2; ++look) {
    for (size_t i = 0; i < valid; ++i) {
      damages[i] = Verify(fs, candidates[i]);
      if (damages[i].ok()) {
        valid = i;
      } else if (!absl::IsDataLoss(damages[i]) && !absl::IsNotFound(damages[i])) {
        return damages[i];
      }
    }
  }
  for (size_t i = 0; i < valid; ++i) report(candidates[i], damages[i]);
  if (valid < candidates.size()) return absl::make_optional(candidates[valid]);
  if (candidates.empty()) return absl::optional<std::string>();
  return absl::DataLossError(absl::StrCat("none of the ", candidates.size(), " checkpoints of ", directory,
                                          " can be read; the newest is ", candidates.front()));
}

}  // namespace lockstep
