#include "cli/inspect.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "cli/config_flags.h"
#include "cli/report/json_text.h"
#include "common/base/command_line.h"
#include "common/base/process.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/bundle_files.h"
#include "common/checkpoint/bundle_reader.h"
#include "common/checkpoint/checkpoint_state.h"
#include "common/checkpoint/digest.h"
#include "common/checkpoint/latest_valid.h"
#include "common/tensor/dtype.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep inspect";
// One long name does not make every line as long.
constexpr size_t kWidestColumn = 100;

// "d/model.ckpt-1.index" and "d/model.ckpt-1.data-00000-of-00001" to "d/model.ckpt-1".
std::string PrefixOfFile(const std::string& path) {
  const std::string prefix = path.substr(0, path.rfind('.'));
  return path == IndexPath(prefix) || IsDataFileOf(Basename(prefix), Basename(path)) ? prefix : path;
}

// InvalidArgument when there is neither a directory nor a checkpoint at `path`.
absl::StatusOr<std::string> FindCheckpoint(FileSystem* fs, const std::string& path, std::ostream& err) {
  const std::string prefix = PrefixOfFile(path);
  ASSIGN_OR_RETURN(const bool exists, CheckpointExists(fs, prefix));
  if (exists) return prefix;
  const absl::Status listed = fs->ListDirectory(path).status();
  if (absl::IsNotFound(listed)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is neither a directory nor a checkpoint"));
  }
  RETURN_IF_ERROR(listed);
  ASSIGN_OR_RETURN(const absl::optional<std::string> newest,
                   NewestValidCheckpoint(fs, path, [&err](const std::string& name, const absl::Status& damage) {
                     err << "damaged: " << name << ": " << damage.message() << "\n";
                   }));
  if (!newest.has_value()) return absl::NotFoundError(absl::StrCat(path, " has no checkpoint"));
  return *newest;
}

struct Row {
  std::string name;
  std::string dtype;
  std::string shape;
  uint64_t bytes;
};

absl::StatusOr<std::vector<Row>> RowsOf(const BundleReader& reader) {
  std::vector<Row> rows;
  for (const std::string& name : reader.names()) {
    ASSIGN_OR_RETURN(const BundleReader::Entry entry, reader.Describe(name));
    rows.push_back({name, std::string(NameOf(entry.dtype)), entry.shape.ToString(), entry.bytes});
  }
  return rows;
}

uint64_t TotalOf(const std::vector<Row>& rows) {
  uint64_t total = 0;
  for (const Row& row : rows) total += row.bytes;
  return total;
}

void PrintTable(const std::string& prefix, const std::vector<Row>& rows, std::ostream& out) {
  size_t name_width = 4, dtype_width = 5, shape_width = 5;
  std::vector<std::string> names;
  for (const Row& row : rows) {
    names.push_back(absl::Utf8SafeCHexEscape(row.name));
    name_width = std::max(name_width, names.back().size());
    dtype_width = std::max(dtype_width, row.dtype.size());
    shape_width = std::max(shape_width, row.shape.size());
  }
  name_width = std::min(name_width, kWidestColumn);
  shape_width = std::min(shape_width, kWidestColumn);
  const auto print = [&](absl::string_view name, absl::string_view dtype, absl::string_view shape,
                         absl::string_view bytes) {
    out << absl::StreamFormat("%-*s  %-*s  %-*s  %12s\n", name_width, name, dtype_width, dtype, shape_width, shape,
                              bytes);
  };
  out << prefix << "\n";
  print("name", "dtype", "shape", "bytes");
  for (size_t i = 0; i < rows.size(); ++i) print(names[i], rows[i].dtype, rows[i].shape, absl::StrCat(rows[i].bytes));
  out << rows.size() << " variables, " << TotalOf(rows) << " bytes, checksums ok\n";
}

void PrintJson(const std::string& prefix, const std::vector<Row>& rows, const std::string& digest, std::ostream& out) {
  out << "{\"checkpoint\": " << JsonString(prefix) << ",\n \"variables\": [";
  const char* separator = "\n  ";
  for (const Row& row : rows) {
    out << separator << "{\"name\": " << JsonString(row.name) << ", \"dtype\": " << JsonString(row.dtype)
        << ", \"shape\": " << row.shape << ", \"bytes\": " << row.bytes << "}";
    separator = ",\n  ";
  }
  out << "],\n \"bytes\": " << TotalOf(rows) << ",\n \"digest\": " << JsonString(digest) << "}\n";
}

absl::Status Print(FileSystem* fs, const std::string& prefix, bool digest_only, bool json, std::ostream& out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(fs, prefix));
  ASSIGN_OR_RETURN(const std::vector<Row> rows, RowsOf(*reader));
  if (!json && !digest_only) {
    RETURN_IF_ERROR(reader->Verify());
    PrintTable(prefix, rows, out);
    return absl::OkStatus();
  }
  // Reads everything, and so verifies it.
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
      "Exit codes: 0 all is well; 1 the checkpoint is damaged, or there is none; 2 wrong arguments.");
  command_line.AddArgument("DIR|CHECKPOINT",
                           "a logdir, of which the newest valid checkpoint is taken; or a checkpoint, such as "
                           "runs/mlp/model.ckpt-1000",
                           &path);
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
  return PrintError(kName, status.message(),
                    !prefix.ok() && absl::IsInvalidArgument(status) ? kExitBadConfiguration : kExitFailed, err);
}

}  // namespace lockstep
