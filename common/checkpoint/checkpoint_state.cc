#include "lockstep/common/checkpoint/checkpoint_state.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"

namespace lockstep {
namespace {

// An error collector that keeps the first error, with its line and column counted from 1.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string RelativeTo(const std::string& directory, const std::string& prefix) {
  const std::string start = JoinPath(directory, "x");
  const absl::string_view parent = absl::string_view(start).substr(0, start.size() - 1);
  return absl::StartsWith(prefix, parent) ? prefix.substr(parent.size()) : prefix;
}

}  // namespace

absl::StatusOr<absl::optional<v1::CheckpointState>> ReadCheckpointState(FileSystem* fs, const std::string& directory,
                                                                        const std::string& file_name) {
  const std::string path = JoinPath(directory, file_name);
  const auto text = ReadFile(fs, path);
  if (absl::IsNotFound(text.status())) return absl::optional<v1::CheckpointState>();
  RETURN_IF_ERROR(text.status());

  v1::CheckpointState state;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(*text, &state)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.text()));
  }
  if (state.model_checkpoint_path().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no model_checkpoint_path"));
  }
  state.set_model_checkpoint_path(JoinPath(directory, state.model_checkpoint_path()));
  for (std::string& prefix : *state.mutable_all_model_checkpoint_paths()) prefix = JoinPath(directory, prefix);
  return absl::make_optional(std::move(state));
}

absl::Status WriteCheckpointState(FileSystem* fs, const std::string& directory, const std::string& newest,
                                  std::vector<std::string> all_prefixes, v1::CheckpointState times) {
  if (all_prefixes.empty() || all_prefixes.back() != newest) all_prefixes.push_back(newest);
  v1::CheckpointState state = std::move(times);
  state.set_model_checkpoint_path(RelativeTo(directory, newest));
  for (const std::string& prefix : all_prefixes) state.add_all_model_checkpoint_paths(RelativeTo(directory, prefix));
  return WriteCheckpointStateFile(fs, JoinPath(directory, kCheckpointStateFile), state);
}

absl::Status WriteCheckpointStateFile(FileSystem* fs, const std::string& path, const v1::CheckpointState& state) {
  std::string text;
  CHECK(google::protobuf::TextFormat::PrintToString(state, &text));
  return WriteFileAtomically(fs, path, text);
}

absl::StatusOr<absl::optional<std::string>> LatestCheckpoint(FileSystem* fs, const std::string& directory,
                                                             const std::string& file_name) {
  ASSIGN_OR_RETURN(const absl::optional<v1::CheckpointState> state, ReadCheckpointState(fs, directory, file_name));
  if (!state.has_value()) return absl::optional<std::string>();
  const std::string& prefix = state->model_checkpoint_path();
  ASSIGN_OR_RETURN(const bool exists, CheckpointExists(fs, prefix));
  if (exists) return absl::make_optional(prefix);
  LOG(ERROR) << JoinPath(directory, file_name) << " names " << prefix << ", whose index does not exist";
  return absl::optional<std::string>();
}

absl::StatusOr<bool> CheckpointExists(FileSystem* fs, const std::string& prefix) {
  return fs->Exists(IndexPath(prefix));
}

absl::Status RemoveCheckpoint(FileSystem* fs, const std::string& prefix) {
  // Removes the index first, because without it the checkpoint no longer exists, even if removing the other files
  // fails.
  absl::Status status = fs->Remove(IndexPath(prefix));
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  const std::string directory(Dirname(prefix));
  const auto names = fs->ListDirectory(directory);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (!IsDataFileOf(Basename(prefix), name) && name != absl::StrCat(Basename(prefix), ".meta")) continue;
    status = fs->Remove(JoinPath(directory, name));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return absl::OkStatus();
}

absl::optional<int64_t> StepOfCheckpoint(absl::string_view prefix) {
  const absl::string_view name = Basename(prefix);
  const size_t dash = name.rfind('-');
  if (dash == absl::string_view::npos || dash + 1 == name.size()) return absl::nullopt;
  const absl::string_view digits = name.substr(dash + 1);
  int64_t step;
  if (digits.find_first_not_of("0123456789") != absl::string_view::npos || !absl::SimpleAtoi(digits, &step)) {
    return absl::nullopt;
  }
  return step;
}

}  // namespace lockstep
