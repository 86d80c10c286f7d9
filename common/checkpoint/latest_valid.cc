#include "lockstep/common/checkpoint/latest_valid.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle_header.h"
#include "lockstep/common/checkpoint/bundle_reader.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"

namespace lockstep {
namespace {

// "a/model.ckpt-12" to "model.ckpt".
absl::string_view BaseOf(absl::string_view prefix) {
  const absl::string_view name = Basename(prefix);
  return StepOfCheckpoint(prefix).has_value() ? name.substr(0, name.rfind('-')) : name;
}

// What a run's own are called.
constexpr char kRunBase[] = "model.ckpt";

// Step to prefix of the checkpoints in the directory.
using ByStep = std::multimap<int64_t, std::string>;
absl::StatusOr<ByStep> FindInDirectory(FileSystem* fs, const std::string& directory,
                                       const std::set<absl::string_view>& bases) {
  ByStep found;
  const auto names = fs->ListDirectory(directory);
  if (absl::IsNotFound(names.status())) return found;
  RETURN_IF_ERROR(names.status());
  for (absl::string_view name : *names) {
    if (!absl::ConsumeSuffix(&name, ".index")) continue;
    const absl::optional<int64_t> step = StepOfCheckpoint(name);
    if (step.has_value() && bases.count(BaseOf(name)) > 0) found.emplace(*step, JoinPath(directory, name));
  }
  return found;
}

// In the order of the header, each once.
absl::StatusOr<std::vector<std::string>> Candidates(FileSystem* fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const absl::optional<v1::CheckpointState> state, ReadCheckpointState(fs, directory));
  const std::string choice = state.has_value() ? state->model_checkpoint_path() : "";
  const absl::string_view base = state.has_value() ? BaseOf(choice) : kRunBase;
  ASSIGN_OR_RETURN(ByStep found, FindInDirectory(fs, directory, {base, kRunBase}));
  if (base != kRunBase) {
    ASSIGN_OR_RETURN(const bool of_saver, IsWrittenBySaver(fs, choice));
    for (auto it = found.begin(); it != found.end() && !of_saver;) {
      it = BaseOf(it->second) == base ? std::next(it) : found.erase(it);
    }
  }
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

absl::Status NotTheRuns(const std::string& prefix) {
  return absl::FailedPreconditionError(
      absl::StrCat(prefix,
                   " was written by a Saver, not by the run; a run may start from its values with checkpoint { "
                   "warm_start: \"",
                   prefix, "\" }"));
}

// `is_foreign`: it is not damaged, and not one of those that are looked for.
absl::Status Verify(FileSystem* fs, const std::string& prefix, CheckpointsOf whose, bool* is_foreign) {
  *is_foreign = false;
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(fs, prefix));
  *is_foreign = whose == CheckpointsOf::kRun && reader->written_by_saver();
  return *is_foreign ? NotTheRuns(prefix) : reader->Verify();
}

}  // namespace

absl::StatusOr<absl::optional<std::string>> NewestValidCheckpoint(
    FileSystem* fs, const std::string& directory,
    absl::FunctionRef<void(const std::string& prefix, const absl::Status& damage)> report, CheckpointsOf whose) {
  ASSIGN_OR_RETURN(const std::vector<std::string> candidates, Candidates(fs, directory));
  std::vector<absl::Status> damages(candidates.size());
  size_t valid = candidates.size();
  size_t foreign = 0;
  for (int look = 0; look < 2; ++look) {
    foreign = 0;
    for (size_t i = 0; i < valid; ++i) {
      bool is_foreign = false;
      damages[i] = Verify(fs, candidates[i], whose, &is_foreign);
      if (is_foreign) {
        ++foreign;
      } else if (damages[i].ok()) {
        valid = i;
      } else if (!absl::IsDataLoss(damages[i]) && !absl::IsNotFound(damages[i])) {
        return damages[i];
      }
    }
  }
  for (size_t i = 0; i < valid; ++i) report(candidates[i], damages[i]);
  if (valid < candidates.size()) return absl::make_optional(candidates[valid]);
  if (candidates.empty()) return absl::optional<std::string>();
  if (foreign == candidates.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " has no checkpoint of a run: ", NotTheRuns(candidates.front()).message(),
                     ", and with a logdir of its own"));
  }
  return absl::DataLossError(absl::StrCat("none of the ", candidates.size(), " checkpoints of ", directory,
                                          " can be read; the newest is ", candidates.front()));
}

}  // namespace lockstep
