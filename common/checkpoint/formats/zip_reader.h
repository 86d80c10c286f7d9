#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMATS_ZIP_READER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMATS_ZIP_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Reader of a ZIP archive (PKWARE's APPNOTE, with zip64) with stored or deflated members. Checks all numbers in the
// archive against the length of the file before using them. Thread-safe.
class ZipReader {
 public:
  struct Member {
    std::string name;
    bool deflated = false;
    // Position and size of the member's bytes in the file.
    uint64_t offset = 0, stored_bytes = 0;
    // Size after inflation.
    uint64_t bytes = 0;
    uint32_t crc32 = 0;
  };

  // Errors: NotFound; DataLoss for a damaged archive or another format; Unimplemented for a multi-part archive, an
  // encrypted member, or another compression method.
  static absl::StatusOr<std::unique_ptr<ZipReader>> Open(FileSystem* fs, const std::string& path);

  const std::string& path() const { return path_; }
  const RandomAccessFile& file() const { return *file_; }
  // Members in archive order. Their names are unique.
  const std::vector<Member>& members() const { return members_; }

  // Returns the first `n` bytes of a member, or all bytes if there are fewer. Does not verify the checksum.
  absl::StatusOr<std::string> ReadStart(const Member& member, size_t n) const;
  // Fills `out` with the member's bytes from `skip` to its end. DataLoss if the member's checksum is wrong.
  absl::Status ReadFrom(const Member& member, uint64_t skip, absl::Span<char> out) const;

 private:
  struct Directory {
    uint64_t offset = 0, bytes = 0, entries = 0;
  };

  explicit ZipReader(std::string path) : path_(std::move(path)) {}
  absl::StatusOr<Directory> FindDirectory() const;
  absl::Status ReadDirectory(const Directory& directory);
  // Consumes a directory entry from the beginning of `rest`.
  absl::StatusOr<Member> TakeEntry(absl::string_view* rest) const;
  // Sets the position of a member's bytes, which follow its local header at `offset`.
  absl::Status Locate(uint64_t offset, Member* member) const;
  absl::Status CheckMembers() const;
  // Passes a member's bytes to `take`, piece by piece and in order, until `take` returns false.
  absl::Status Stream(const Member& member, absl::FunctionRef<bool(absl::string_view piece)> take) const;
  absl::Status Damaged(absl::string_view what) const;
  // Explains, for an error message, why the file is not a ZIP archive: it is cut off, or it has another known format.
  std::string ForeignStart() const;

  const std::string path_;
  std::unique_ptr<RandomAccessFile> file_;
  std::vector<Member> members_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_ZIP_READER_H_
