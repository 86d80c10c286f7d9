#include "lockstep/cli/checkpoint/export_command.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "lockstep/cli/checkpoint/checkpoint_argument.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/report/weight_names.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep export";

struct ExportFlags {
  std::string path;
  std::string format;
  std::string out;
  bool optimizer_state = false;
};

// Returns the format given by --format if it is set, otherwise by the extension of --out, otherwise safetensors.
absl::StatusOr<TensorFileFormat> ChooseFormat(const ExportFlags& flags) {
  const absl::optional<TensorFileFormat> of_path = FormatOfPath(flags.out);
  if (flags.format.empty()) return of_path.value_or(TensorFileFormat::kSafetensors);
  const auto format = ParseTensorFileFormat(flags.format);
  if (!format.ok()) return absl::InvalidArgumentError(absl::StrCat("--format=", format.status().message()));
  if (of_path.has_value() && *of_path != *format) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out=", flags.out, " ends as ", NameOf(*of_path), " does, --format is ", NameOf(*format)));
  }
  return format;
}

// Returns true if a file of weights can hold the tensor.
bool IsHeld(const TensorReader& checkpoint, const std::string& name) {
  const auto entry = checkpoint.Describe(name);
  return entry.ok() && SizeOf(entry->dtype) > 0;
}

absl::StatusOr<std::vector<std::string>> ChooseNames(FileSystem* fs, const TensorReader& checkpoint,
                                                     const ExportFlags& flags, std::ostream& err) {
  std::vector<std::string> names, left_out;
  for (std::string& name : checkpoint.names()) {
    (IsHeld(checkpoint, name) ? names : left_out).push_back(std::move(name));
  }
  if (!flags.optimizer_state) {
    ASSIGN_OR_RETURN(const absl::optional<v1::RunRecord> record,
                     ReadRunRecord(fs, std::string(Dirname(checkpoint.prefix()))));
    names = WeightNames(checkpoint, record.has_value() ? &record->model() : nullptr);
    // All of a run's weights can be written, so nothing that was left out is a weight.
    if (record.has_value()) left_out.clear();
  }
  for (const std::string& name : left_out) err << kName << ": left out, its type cannot be written: " << name << "\n";
  if (names.empty()) return absl::NotFoundError(absl::StrCat(checkpoint.prefix(), " has no variables to export"));
  return names;
}

absl::StatusOr<std::map<std::string, std::string>> MetadataOf(const TensorReader& checkpoint) {
  std::map<std::string, std::string> metadata;
  const auto entry = checkpoint.Describe(kGlobalStepKey);
  if (!entry.ok() || entry->dtype != v1::DT_INT64 || entry->shape.num_elements() != 1) return metadata;
  ASSIGN_OR_RETURN(const Tensor step, checkpoint.Read(kGlobalStepKey));
  metadata[kGlobalStepKey] = absl::StrCat(step.flat<int64_t>()[0]);
  return metadata;
}

absl::Status Export(FileSystem* fs, const ExportFlags& flags, std::ostream& out, std::ostream& err) {
  ASSIGN_OR_RETURN(const TensorFileFormat format, ChooseFormat(flags));
  ASSIGN_OR_RETURN(const std::string prefix, FindCheckpoint(fs, flags.path, err));
  const std::string path = flags.out.empty() ? absl::StrCat(prefix, ".", NameOf(format)) : flags.out;
  if (path == prefix) return absl::InvalidArgumentError(absl::StrCat(path, " is what is read; name another --out"));
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> checkpoint, OpenTensors(fs, prefix));
  TensorFileContents contents;
  ASSIGN_OR_RETURN(contents.names, ChooseNames(fs, *checkpoint, flags, err));
  ASSIGN_OR_RETURN(contents.metadata, MetadataOf(*checkpoint));
  RETURN_IF_ERROR(WriteTensorFile(fs, path, format, *checkpoint, contents));
  uint64_t bytes = 0;
  for (const std::string& name : contents.names) {
    ASSIGN_OR_RETURN(const TensorReader::Entry entry, checkpoint->Describe(name));
    bytes += entry.bytes;
  }
  out << "wrote " << path << ", " << contents.names.size() << " variables, " << bytes << " bytes, of " << prefix
      << "\n";
  return absl::OkStatus();
}

}  // namespace

int ExportCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  ExportFlags flags;
  CommandLine command_line(
      kName, "Writes the weights of a checkpoint as a file that other programs read: safetensors, or NumPy's npz.",
      "Names, types and shapes are the checkpoint's. checkpoint.warm_start takes such a file, too.\n"
      "Exit codes: 0 done; 2 the checkpoint is damaged, there is none, or wrong arguments;\n"
      "1 a file cannot be read or written.\n"
      "Example: lockstep export runs/mlp --format=npz --out=mlp.npz");
  command_line.AddArgument("DIR|CHECKPOINT", kCheckpointArgumentHelp, &flags.path);
  command_line.AddFlag("format", "FORMAT", "safetensors or npz; by default what --out ends with, else safetensors",
                       &flags.format);
  command_line.AddFlag(
      "out", "FILE", "the file; an existing one is replaced. By default the checkpoint's name and .FORMAT", &flags.out);
  command_line.AddFlag("optimizer_state", "",
                       "also what only resuming needs: the optimizer's state, its scalars, and the global step",
                       &flags.optimizer_state);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const absl::Status status = Export(fs, flags, out, err);
  return status.ok() ? kExitDone : PrintError(kName, status.message(), ExitCodeOfInput(status), err);
}

}  // namespace lockstep
