#include "lockstep/common/checkpoint/bundle/bundle_header.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"

namespace lockstep {

absl::StatusOr<v1::BundleHeaderProto> ReadBundleHeader(FileSystem* fs, const std::string& prefix) {
  const std::string path = IndexPath(prefix);
  ASSIGN_OR_RETURN(const std::string table, ReadFile(fs, path));
  v1::BundleHeaderProto header;
  bool found = false;
  const absl::Status status = ReadIndexTable(table, [&](absl::string_view key, absl::string_view value) {
    if (key.empty()) found = header.ParseFromArray(value.data(), static_cast<int>(value.size()));
    return absl::OkStatus();
  });
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  if (!found) return absl::DataLossError(absl::StrCat(path, ": no header"));
  return header;
}

absl::StatusOr<bool> IsWrittenBySaver(FileSystem* fs, const std::string& prefix) {
  const absl::StatusOr<v1::BundleHeaderProto> header = ReadBundleHeader(fs, prefix);
  if (header.ok()) return header->written_by_saver();
  if (absl::IsNotFound(header.status()) || absl::IsDataLoss(header.status())) return false;
  return header.status();
}

}  // namespace lockstep
