#include "lockstep/cli/checkpoint/inspect.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lockstep/cli/checkpoint/checkpoint_argument.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/report/variable_table.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/report/json_text.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep inspect";

absl::StatusOr<std::vector<VariableRow>> RowsOf(const TensorReader& reader) {
  std::vector<VariableRow> rows;
  for (const std::string& name : reader.names()) {
    ASSIGN_OR_RETURN(const TensorReader::Listing tensor, reader.List(name));
    rows.push_back({name, tensor.type, tensor.shape.ToString(), tensor.bytes, absl::nullopt});
  }
  return rows;
}

void PrintTable(const std::string& prefix, const std::vector<VariableRow>& rows, bool has_checksums,
                std::ostream& out) {
  out << prefix << "\n";
  PrintVariableTable(rows, out);
  out << rows.size() << " variables, " << TotalBytes(rows) << " bytes" << (has_checksums ? ", checksums ok\n" : "\n");
}

void PrintJson(const std::string& prefix, const std::vector<VariableRow>& rows, const std::string& digest,
               std::ostream& out) {
  out << "{\"checkpoint\": " << JsonString(prefix) << ",\n \"variables\": ";
  PrintVariableJson(rows, out);
  out << ",\n \"bytes\": " << TotalBytes(rows) << ",\n \"digest\": " << JsonString(digest) << "}\n";
}

absl::Status Print(FileSystem* fs, const std::string& prefix, bool digest_only, bool json, std::ostream& out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> reader, OpenTensors(fs, prefix));
  ASSIGN_OR_RETURN(const std::vector<VariableRow> rows, RowsOf(*reader));
  if (!json && !digest_only) {
    RETURN_IF_ERROR(reader->Verify());
    PrintTable(prefix, rows, FormatOfPath(prefix) != TensorFileFormat::kSafetensors, out);
    return absl::OkStatus();
  }
  // Reads the whole checkpoint, which also verifies it.
  ASSIGN_OR_RETURN(const std::string digest, CheckpointDigest(*reader));
  if (json) {
    PrintJson(prefix, rows, digest, out);
  } else {
    out << digest << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

int Inspect(FileSystem* fs, const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  std::string path;
  bool digest = false, json = false;
  CommandLine command_line(
      kName, "Lists what a checkpoint holds and verifies all its checksums.",
      "Exit codes: 0 all is well; 2 the checkpoint is damaged, there is none, or wrong arguments;\n"
      "1 a file cannot be read.");
  command_line.AddArgument(
      "DIR|CHECKPOINT", absl::StrCat(kCheckpointArgumentHelp, "; or a file of weights, .safetensors or .npz"), &path);
  command_line.AddFlag(
      "digest", "",
      "prints only one SHA-256 over all variables by name: name, dtype, shape, bytes. Equal digests mean "
      "equal bits",
      &digest);
  command_line.AddFlag("json", "", "prints one JSON object, with the digest", &json);
  if (const auto exit_code = command_line.Parse(args, out, err)) return *exit_code;
  const auto prefix = FindCheckpoint(fs, path, err);
  const absl::Status status = prefix.ok() ? Print(fs, *prefix, digest, json, out) : prefix.status();
  if (status.ok()) return kExitDone;
  return PrintError(kName, status.message(), ExitCodeOfInput(status), err);
}

}  // namespace lockstep
