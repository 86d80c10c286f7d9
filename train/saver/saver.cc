#include "lockstep/train/saver/saver.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_header.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/latest_valid.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/train/saver/checkpoints.h"
#include "lockstep/train/saver/read_variable.h"

namespace lockstep::train {
namespace {

constexpr int kMostShards = 9999;
// Files that the chief writes next to its checkpoints.
constexpr const char* kRunFiles[] = {kCheckpointStateFile, kRunRecordFile, kGenerationFile, "lock"};

// Returns true if `name` is a valid file name that no checkpoint file (PREFIX.index or PREFIX.data-00000-of-00001) can
// have.
bool MayBeStateFile(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && !absl::StrContains(name, '/') &&
         !absl::EndsWith(name, ".index") && !absl::StrContains(name, ".data-");
}

absl::Status CheckOptions(const SaverOptions& options) {
  std::string wrong;
  if (options.max_to_keep < 0) {
    wrong = absl::StrCat("max_to_keep is ", options.max_to_keep, "; 0 keeps all");
  } else if (!std::isfinite(options.keep_checkpoint_every_n_hours) || options.keep_checkpoint_every_n_hours < 0) {
    wrong = absl::StrCat("keep_checkpoint_every_n_hours is ", options.keep_checkpoint_every_n_hours,
                         "; it is a number that is at least 0");
  } else if (options.shards < 0 || options.shards > kMostShards) {
    wrong = absl::StrCat("shards is ", options.shards, "; it is 0 to ", kMostShards);
  } else if (!MayBeStateFile(options.latest_filename)) {
    wrong = absl::StrCat("latest_filename is \"", options.latest_filename,
                         "\"; it is the name of a file, without a directory, and not that of a checkpoint's own");
  } else if (options.basename.empty() || absl::StrContains(options.basename, '/')) {
    wrong = absl::StrCat("basename is \"", options.basename, "\"; it is a name without a directory");
  }
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("Saver: ", wrong));
}

absl::Status CheckVariables(const SaverOptions& options) {
  for (const auto& [variable, key] : options.keys) {
    if (key.empty()) return absl::InvalidArgumentError(absl::StrCat("Saver: the key of ", variable, " is empty"));
  }
  if (!options.var_list.has_value()) return absl::OkStatus();
  if (options.var_list->empty() && !options.allow_empty) {
    return absl::InvalidArgumentError("Saver: no variables to save: var_list is empty; without one all are saved");
  }
  std::set<std::string> names, keys;
  for (const std::string& name : *options.var_list) {
    const auto mapped = options.keys.find(name);
    const std::string& key = mapped == options.keys.end() ? name : mapped->second;
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("Saver: var_list names ", name, " twice"));
    }
    if (!keys.insert(key).second) {
      return absl::InvalidArgumentError(absl::StrCat("Saver: at least two variables have the key ", key));
    }
  }
  for (const auto& [variable, key] : options.keys) {
    if (names.count(variable) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("Saver: keys has the variable ", variable, ", which var_list does not name"));
    }
  }
  return absl::OkStatus();
}

bool TakesRunFile(const SaverOptions& options) {
  const auto taken = std::find(std::begin(kRunFiles), std::end(kRunFiles), options.latest_filename);
  return options.write_state && taken != std::end(kRunFiles);
}

// Returns "model.ckpt" for "a/model.ckpt-12".
absl::string_view BaseOf(absl::string_view prefix) {
  const absl::string_view name = Basename(prefix);
  return StepOfCheckpoint(prefix).has_value() ? name.substr(0, name.rfind('-')) : name;
}

// Returns `path` as written in the state file of `directory`.
std::string StoredPath(const std::string& directory, const std::string& path, bool relative) {
  std::filesystem::path from = directory, to = path;
  // An absolute path is unambiguous; readers resolve a relative one against the directory of the state file.
  if (to.is_absolute() && !(relative && from.is_absolute())) return path;
  if (from.is_absolute() != to.is_absolute()) to = std::filesystem::absolute(to);
  if (from.is_absolute() && !relative) return to.string();
  return to.lexically_normal().lexically_relative(from.lexically_normal()).string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Saver>> Saver::Create(SaverOptions options) {
  RETURN_IF_ERROR(CheckOptions(options));
  RETURN_IF_ERROR(CheckVariables(options));
  return std::unique_ptr<Saver>(new Saver(std::move(options)));
}

Saver::Saver(SaverOptions options)
    : options_(std::move(options)),
      history_(options_.max_to_keep, absl::Hours(options_.keep_checkpoint_every_n_hours), options_.clock->WallTime()) {}

const std::string& Saver::KeyOf(const std::string& variable) const {
  const auto found = options_.keys.find(variable);
  return found == options_.keys.end() ? variable : found->second;
}

absl::StatusOr<std::map<std::string, Tensor>> Saver::Select(absl::Span<const NamedTensor> values) const {
  std::map<std::string, Tensor> by_name, selected;
  for (const NamedTensor& variable : values) {
    if (!by_name.emplace(variable.name, variable.value).second) {
      return absl::InvalidArgumentError(absl::StrCat("Saver: at least two variables have the name ", variable.name));
    }
  }
  std::vector<std::string> names, missing;
  if (options_.var_list.has_value()) {
    names = *options_.var_list;
  } else {
    for (const auto& [name, value] : by_name) names.push_back(name);
  }
  for (const std::string& name : names) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      missing.push_back(name);
    } else if (!selected.emplace(KeyOf(name), found->second).second) {
      return absl::InvalidArgumentError(absl::StrCat("Saver: at least two variables have the key ", KeyOf(name)));
    }
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("Saver: var_list names ", absl::StrJoin(missing, ", "),
                                                   ", without a value among the ", values.size(),
                                                   " that are to be saved"));
  }
  if (selected.empty() && !options_.allow_empty) return absl::InvalidArgumentError("Saver: no variables to save");
  return selected;
}

absl::Status Saver::CheckBesideRun(absl::string_view run_basename) const {
  if (options_.basename == run_basename || options_.basename == kRunBase) {
    return absl::InvalidArgumentError(
        absl::StrCat("basename is \"", options_.basename, "\", as that of a run's own checkpoints; give another"));
  }
  if (!TakesRunFile(options_)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("latest_filename is \"", options_.latest_filename, "\", a file of the run; give another"));
}

absl::Status Saver::CheckPlace(const std::string& directory, const std::string& prefix, bool has_step) const {
  if (!has_step && options_.shards == 0 && Basename(prefix) == options_.latest_filename) {
    return absl::InvalidArgumentError(
        absl::StrCat("latest_filename collides with the checkpoint: ", options_.latest_filename, " and ", prefix));
  }
  const absl::Status listed = options_.fs->ListDirectory(directory).status();
  if (absl::IsNotFound(listed)) {
    return absl::InvalidArgumentError(absl::StrCat("Parent directory of ", prefix, " doesn't exist, can't save"));
  }
  RETURN_IF_ERROR(listed);
  ASSIGN_OR_RETURN(const bool of_run, IsRunDirectory(options_.fs, directory));
  if (!of_run) return absl::OkStatus();
  if (TakesRunFile(options_)) {
    return absl::InvalidArgumentError(absl::StrCat(directory, " is a run's logdir, whose chief writes ",
                                                   options_.latest_filename,
                                                   "; give the Saver another latest_filename, or another directory"));
  }
  ASSIGN_OR_RETURN(const bool exists, CheckpointExists(prefix, options_.fs));
  ASSIGN_OR_RETURN(const bool of_saver, IsWrittenBySaver(options_.fs, prefix));
  if (BaseOf(prefix) == kRunBase || (exists && !of_saver)) {
    return absl::InvalidArgumentError(absl::StrCat(directory, " is a run's logdir, and ", prefix,
                                                   " the name of a checkpoint of the run; save under another name, or "
                                                   "in another directory"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Saver::Save(const std::string& path, absl::optional<int64_t> global_step,
                                        absl::Span<const NamedTensor> values) {
  if (global_step.has_value() && *global_step < 0) {
    return absl::InvalidArgumentError(absl::StrCat("Saver: the step is ", *global_step));
  }
  std::string prefix = Basename(path).empty() ? JoinPath(path, options_.basename) : path;
  if (global_step.has_value()) {
    absl::StrAppend(&prefix, "-", absl::StrFormat("%0*d", options_.pad_step_number ? 8 : 1, *global_step));
  }
  const std::string directory(Dirname(prefix));
  ASSIGN_OR_RETURN(const auto variables, Select(values));
  if (variables.empty()) return std::string();
  RETURN_IF_ERROR(CheckPlace(directory, prefix, global_step.has_value()));
  for (SaverListener* const listener : options_.listeners) RETURN_IF_ERROR(listener->BeforeSave(global_step));

  BundleWriterOptions files;
  files.num_data_files = std::max(options_.shards, 1);
  files.written_by_saver = true;
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(options_.fs, prefix, std::move(files)));
  for (const auto& [key, value] : variables) {
    RETURN_IF_ERROR(writer->Add(key, value.dtype(), value.shape(), value.bytes()));
  }
  RETURN_IF_ERROR(writer->Finish());
  if (options_.write_state) {
    history_.Record(prefix, options_.clock->WallTime());
    RETURN_IF_ERROR(WriteState(directory, prefix));
    RemoveDoomed();
  }
  for (SaverListener* const listener : options_.listeners) RETURN_IF_ERROR(listener->AfterSave(global_step, prefix));
  return prefix;
}

absl::Status Saver::WriteState(const std::string& directory, const std::string& newest) const {
  const bool relative = options_.save_relative_paths || directory.front() != '/';
  v1::CheckpointState state;
  state.set_model_checkpoint_path(StoredPath(directory, newest, relative));
  for (const CheckpointHistory::Entry& entry : history_.entries()) {
    state.add_all_model_checkpoint_paths(StoredPath(directory, entry.prefix, relative));
  }
  if (history_.entries().empty()) state.add_all_model_checkpoint_paths(state.model_checkpoint_path());
  return WriteCheckpointStateFile(options_.fs, JoinPath(directory, options_.latest_filename), state);
}

void Saver::RemoveDoomed() {
  for (const std::string& prefix : history_.TakeDoomed()) {
    const auto remove = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const bool of_run, IsRunDirectory(options_.fs, std::string(Dirname(prefix))));
      ASSIGN_OR_RETURN(const bool of_saver, IsWrittenBySaver(options_.fs, prefix));
      if (!of_run || of_saver) return RemoveCheckpoint(prefix, options_.fs);
      LOG(WARNING) << "Checkpoint " << prefix << " is not deleted: it lies in a run's logdir, and no Saver wrote it";
      return absl::OkStatus();
    };
    const absl::Status status = remove();
    if (status.ok()) continue;
    LOG(WARNING) << "Checkpoint " << prefix << " is not deleted yet: " << status;
    history_.PutBack(prefix);
  }
}

std::vector<std::pair<std::string, std::string>> Saver::Wanted(const std::vector<std::string>& stored,
                                                               const v1::ModelSpec* expected) const {
  std::vector<std::pair<std::string, std::string>> wanted;
  if (options_.var_list.has_value()) {
    for (const std::string& name : *options_.var_list) wanted.emplace_back(name, KeyOf(name));
  } else if (expected != nullptr) {
    for (const v1::VariableSpec& variable : expected->variables()) {
      wanted.emplace_back(variable.name(), KeyOf(variable.name()));
    }
  } else {
    std::map<std::string, std::string> variables;
    for (const auto& [variable, key] : options_.keys) variables[key] = variable;
    for (const std::string& key : stored) {
      const auto renamed = variables.find(key);
      wanted.emplace_back(renamed == variables.end() ? key : renamed->second, key);
    }
  }
  return wanted;
}

absl::StatusOr<std::vector<NamedTensor>> Saver::Restore(const std::string& prefix,
                                                        const v1::ModelSpec* expected) const {
  std::vector<NamedTensor> values;
  if (options_.var_list.has_value() && options_.var_list->empty()) return values;
  const auto reader = BundleReader::Open(options_.fs, prefix);
  if (absl::IsNotFound(reader.status())) {
    return absl::InvalidArgumentError(absl::StrCat("\"", prefix, "\" is not a valid checkpoint: there is no index"));
  }
  RETURN_IF_ERROR(reader.status());
  std::map<std::string, const v1::VariableSpec*> specs;
  if (expected != nullptr) {
    for (const v1::VariableSpec& variable : expected->variables()) specs[variable.name()] = &variable;
  }
  for (const auto& [variable, key] : Wanted((*reader)->names(), expected)) {
    const auto spec = specs.find(variable);
    if (spec == specs.end()) {
      ASSIGN_OR_RETURN(Tensor value, (*reader)->Read(key));
      values.push_back({variable, std::move(value)});
    } else {
      ASSIGN_OR_RETURN(Tensor value, ReadVariable(**reader, key, *spec->second, options_.reshape));
      values.push_back({variable, std::move(value)});
    }
  }
  return values;
}

absl::Status Saver::End(absl::optional<int64_t> global_step) {
  absl::Status first;
  for (SaverListener* const listener : options_.listeners) first.Update(listener->End(global_step));
  return first;
}

std::vector<std::string> Saver::last_checkpoints() const {
  std::vector<std::string> prefixes;
  for (const CheckpointHistory::Entry& entry : history_.entries()) prefixes.push_back(entry.prefix);
  return prefixes;
}

void Saver::SetLastCheckpoints(absl::Span<const std::string> prefixes) {
  std::vector<CheckpointHistory::Entry> entries;
  for (const std::string& prefix : prefixes) entries.push_back({prefix, absl::InfiniteFuture()});
  history_.Set(std::move(entries));
}

void Saver::SetLastCheckpointsWithTimes(std::vector<CheckpointHistory::Entry> checkpoints) {
  history_.Set(std::move(checkpoints));
}

absl::Status Saver::RecoverLastCheckpoints(absl::Span<const std::string> prefixes) {
  std::vector<CheckpointHistory::Entry> found;
  for (const std::string& prefix : prefixes) {
    ASSIGN_OR_RETURN(const std::vector<absl::Time> times, CheckpointModificationTimes({prefix}, options_.fs));
    if (!times.empty()) found.push_back({prefix, times.front()});
  }
  history_.Set(std::move(found));
  return absl::OkStatus();
}

absl::Status Saver::RecoverHistory(const std::string& directory) {
  ASSIGN_OR_RETURN(const absl::optional<v1::CheckpointState> state,
                   GetCheckpointState(directory, options_.latest_filename, options_.fs));
  if (!state.has_value()) return absl::OkStatus();
  return RecoverLastCheckpoints(
      std::vector<std::string>(state->all_model_checkpoint_paths().begin(), state->all_model_checkpoint_paths().end()));
}

}  // namespace lockstep::train
