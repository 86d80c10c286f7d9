#include "lockstep/common/io/file_system.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

// Maximum size of a file that is read as a whole. A sparse file may claim any size without using disk space.
constexpr uint64_t kLargestWholeFile = 1 << 30;

}  // namespace

absl::StatusOr<std::string> ReadFile(FileSystem* fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file, fs->NewRandomAccessFile(path));
  if (file->size() > kLargestWholeFile) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot read ", path, " as a whole: it has ", file->size(), " bytes"));
  }
  std::string data(file->size(), '\0');
  RETURN_IF_ERROR(file->Read(0, data.size(), &data[0]));
  return data;
}

absl::Status WriteFileAtomically(FileSystem* fs, const std::string& path, absl::string_view data, bool* replaced) {
  if (replaced != nullptr) *replaced = false;
  const std::string temporary = absl::StrCat(path, ".tmp");
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, fs->NewWritableFile(temporary));
  absl::Status status = file->Append(data);
  if (status.ok()) status = file->Sync();
  const absl::Status closed = file->Close();
  if (status.ok()) status = closed;
  if (status.ok()) status = fs->Rename(temporary, path);
  if (!status.ok()) {
    fs->Remove(temporary).IgnoreError();  // The first error is the one to report.
    return status;
  }
  if (replaced != nullptr) *replaced = true;
  return fs->SyncDirectory(std::string(Dirname(path)));
}

std::string JoinPath(absl::string_view directory, absl::string_view name) {
  if (directory.empty() || (!name.empty() && name.front() == '/')) return std::string(name);
  if (name.empty()) return std::string(directory);
  return absl::StrCat(directory, directory.back() == '/' ? "" : "/", name);
}

absl::string_view Basename(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

absl::string_view Dirname(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

}  // namespace lockstep
