#ifndef LOCKSTEP_COMMON_IO_TESTING_FORWARDING_FILE_SYSTEM_H_
#define LOCKSTEP_COMMON_IO_TESTING_FORWARDING_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// A file system for tests that forwards every call to another one. Before each call, it calls a function of the
// subclass, which may delay the call or make it fail. The other file system must outlive this one, which must outlive
// its files. Thread-safe if the subclass is.
class ForwardingFileSystem : public FileSystem {
 public:
  enum class Operation {
    kCreate,
    kOpen,
    kExists,
    kList,
    kCreateDirectory,
    kRename,
    kRemove,
    kSyncDirectory,
    kLock,
    kRead,
    kAppend,
    kFlush,
    kSync,
    kClose,
  };

  explicit ForwardingFileSystem(FileSystem* base) : base_(base) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<Lock>> LockFile(const std::string& path) override;
  absl::StatusOr<bool> IsLocked(const std::string& path) override;

 protected:
  FileSystem* base() const { return base_; }

  // Called before every operation that inspects, reads or changes files, including operations on open files, except
  // destructors. `path` is "FROM to TO" for a rename, and the file's path for an open file. An error is returned to the
  // caller, and nothing is forwarded.
  virtual absl::Status Before(Operation operation, const std::string& path) = 0;
  // Performs Before(kAppend, path) and the append itself.
  virtual absl::Status Append(const std::string& path, absl::string_view data, WritableFile* file);

 private:
  class Writer;
  class Reader;

  FileSystem* const base_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_TESTING_FORWARDING_FILE_SYSTEM_H_
