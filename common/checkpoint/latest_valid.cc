#include "lockstep/common/checkpoint/latest_valid.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_header.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"

namespace lockstep {
namespace {

// Turns "a/model.ckpt-12" into "model.ckpt".
absl::string_view BaseOf(absl::string_view prefix) {
  const absl::string_view name = Basename(prefix);
  return StepOfCheckpoint(prefix).has_value() ? name.substr(0, name.rfind('-')) : name;
}

// Prefixes of the checkpoints in the directory, by step.
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

// Returns each candidate once, in the order that the header documents.
absl::StatusOr<std::vector<std::string>> Candidates(FileSystem* fs, const std::string& directory,
                                                    absl::string_view run_base) {
  ASSIGN_OR_RETURN(const absl::optional<v1::CheckpointState> state, ReadCheckpointState(fs, directory));
  const std::string choice = state.has_value() ? state->model_checkpoint_path() : "";
  const absl::string_view base = state.has_value() ? BaseOf(choice) : run_base;
  ASSIGN_OR_RETURN(ByStep found, FindInDirectory(fs, directory, {base, run_base}));
  if (base != run_base) {
    ASSIGN_OR_RETURN(const bool of_saver, IsWrittenBySaver(fs, choice));
    for (auto it = found.begin(); it != found.end() && !of_saver;) {
      it = BaseOf(it->second) == base ? std::next(it) : found.erase(it);
    }
  }
  std::vector<std::string> candidates;
  std::set<std::string> added;
  const auto add = [&](const std::string& prefix) {
    if (added.insert(prefix).second) candidates.push_back(prefix);
  };
  if (state.has_value()) {
    add(choice);
    const auto& listed = state->all_model_checkpoint_paths();
    const std::set<absl::string_view> is_listed(listed.begin(), listed.end());
    const absl::optional<int64_t> chosen_step = StepOfCheckpoint(choice);
    for (auto it = found.rbegin(); it != found.rend() && chosen_step.has_value() && it->first > *chosen_step; ++it) {
      if (is_listed.count(it->second) == 0) add(it->second);
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

using ReadFunction = absl::FunctionRef<absl::Status(const BundleReader& reader)>;

// Result of a search: the damage found in each candidate that was examined, and which candidate is valid.
struct Search {
  std::vector<absl::Status> damages;
  // Index of the valid candidate, or the number of candidates if none is valid.
  size_t valid = 0;
  // Number of candidates written by a user's Saver.
  size_t foreign = 0;
};

absl::Status Reread(FileSystem* fs, const std::string& prefix, ReadFunction read) {
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(fs, prefix));
  return read(*reader);
}

// Examines candidate `i` at `prefix` once. An error other than damage ends the search.
absl::Status Look(FileSystem* fs, const std::string& prefix, size_t i, CheckpointsOf whose, ReadFunction read,
                  Search* search) {
  const auto reader = BundleReader::Open(fs, prefix);
  absl::Status status = reader.status();
  if (reader.ok() && whose == CheckpointsOf::kRun && (*reader)->written_by_saver()) {
    search->damages[i] = NotTheRuns(prefix);
    ++search->foreign;
    return absl::OkStatus();
  }
  if (reader.ok()) status = read(**reader);
  if (status.ok()) search->valid = i;
  const bool damaged = absl::IsDataLoss(status) || (!reader.ok() && absl::IsNotFound(status));
  search->damages[i] = status;
  return damaged ? absl::OkStatus() : status;
}

absl::StatusOr<Search> FindValid(FileSystem* fs, const std::vector<std::string>& candidates, CheckpointsOf whose,
                                 ReadFunction read) {
  Search search;
  search.damages.resize(candidates.size());
  search.valid = candidates.size();
  for (size_t i = 0; i < search.valid; ++i) {
    RETURN_IF_ERROR(Look(fs, candidates[i], i, whose, read, &search));
  }
  // Examine the damaged candidates again, without overwriting what was read from the valid one.
  const size_t first_valid = search.valid;
  const auto verify = [](const BundleReader& reader) { return reader.Verify(); };
  search.foreign = 0;
  for (size_t i = 0; i < search.valid; ++i) {
    RETURN_IF_ERROR(Look(fs, candidates[i], i, whose, verify, &search));
  }
  if (search.valid == first_valid) return search;
  const absl::Status status = Reread(fs, candidates[search.valid], read);
  if (absl::IsDataLoss(status) && first_valid < candidates.size()) {
    // This checkpoint was readable only briefly. The attempt to read it has overwritten the data from the other one, so
    // read that one again.
    search.damages[search.valid] = status;
    search.valid = first_valid;
    RETURN_IF_ERROR(Reread(fs, candidates[first_valid], read));
    return search;
  }
  RETURN_IF_ERROR(status);
  return search;
}

}  // namespace

absl::StatusOr<absl::optional<std::string>> NewestValidCheckpoint(
    FileSystem* fs, const std::string& directory,
    absl::FunctionRef<void(const std::string& prefix, const absl::Status& damage)> report, CheckpointsOf whose) {
  return ReadNewestCheckpoint(
      fs, directory, [](const BundleReader& reader) { return reader.Verify(); }, report, whose);
}

absl::StatusOr<absl::optional<std::string>> ReadNewestCheckpoint(
    FileSystem* fs, const std::string& directory, ReadFunction read,
    absl::FunctionRef<void(const std::string& prefix, const absl::Status& damage)> report, CheckpointsOf whose,
    absl::string_view run_base) {
  ASSIGN_OR_RETURN(const std::vector<std::string> candidates, Candidates(fs, directory, run_base));
  ASSIGN_OR_RETURN(const Search search, FindValid(fs, candidates, whose, read));
  const size_t valid = search.valid;
  const std::vector<absl::Status>& damages = search.damages;
  for (size_t i = 0; i < valid; ++i) report(candidates[i], damages[i]);
  if (valid < candidates.size()) return absl::make_optional(candidates[valid]);
  if (candidates.empty()) return absl::optional<std::string>();
  if (search.foreign == candidates.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " has no checkpoint of a run: ", NotTheRuns(candidates.front()).message(),
                     ", and with a logdir of its own"));
  }
  return absl::DataLossError(absl::StrCat("none of the ", candidates.size(), " checkpoints of ", directory,
                                          " can be read; the newest is ", candidates.front()));
}

absl::StatusOr<bool> HasCheckpoints(FileSystem* fs, const std::string& directory, absl::string_view run_base) {
  const absl::StatusOr<std::vector<std::string>> candidates = Candidates(fs, directory, run_base);
  if (absl::IsInvalidArgument(candidates.status())) return true;  // a bad state file may name one
  RETURN_IF_ERROR(candidates.status());
  return !candidates->empty();
}

}  // namespace lockstep
