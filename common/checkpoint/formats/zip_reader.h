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

// Reads a ZIP archive (PKWARE's APPNOTE, with zip64) of members that are stored or deflated. Everything that the
// archive says of itself is checked against the length of the file before it is believed. Thread-safe.
class ZipReader {
 public:
  struct Member {
    std::string name;
    bool deflated = false;
    // Where its bytes begin in the file, and how many there are.
    uint64_t offset = 0, stored_bytes = 0;
    // Inflated.
    uint64_t bytes = 0;
    uint32_t crc32 = 0;
  };

  // Errors: NotFound; DataLoss for what is no archive, or a damaged one; Unimplemented for one of several parts, an
  // encrypted member, or one that is compressed otherwise.
  static absl::StatusOr<std::unique_ptr<ZipReader>> Open(FileSystem* fs, const std::string& path);

  const std::string& path() const { return path_; }
  const RandomAccessFile& file() const { return *file_; }
  // In the order of the archive; no two have the same name.
  const std::vector<Member>& members() const { return members_; }

  // The first `n` bytes of a member, or all of them when there are fewer. Verifies no checksum.
  absl::StatusOr<std::string> ReadStart(const Member& member, size_t n) const;
  // The bytes from `skip` to the end, as many as `out` has. DataLoss when the member's checksum is another.
  absl::Status ReadFrom(const Member& member, uint64_t skip, absl::Span<char> out) const;

 private:
  struct Directory {
    uint64_t offset = 0, bytes = 0, entries = 0;
  };

  explicit ZipReader(std::string path) : path_(std::move(path)) {}
  absl::StatusOr<Directory> FindDirectory() const;
  absl::Status ReadDirectory(const Directory& directory);
  // `rest` begins with an entry of the directory, which is consumed.
  absl::StatusOr<Member> TakeEntry(absl::string_view* rest) const;
  // Sets where the bytes of a member begin, from its local header at `offset`.
  absl::Status Locate(uint64_t offset, Member* member) const;
  absl::Status CheckMembers() const;
  // Calls `take` with a member's bytes in order until it returns false.
  absl::Status Stream(const Member& member, absl::FunctionRef<bool(absl::string_view piece)> take) const;
  absl::Status Damaged(absl::string_view what) const;

  const std::string path_;
  std::unique_ptr<RandomAccessFile> file_;
  std::vector<Member> members_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMATS_ZIP_READER_H_
