#ifndef LOCKSTEP_WORKER_DATA_RECORDS_GZIP_READER_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_GZIP_READER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"

struct z_stream_s;

namespace lockstep {

// Returns true if the file starts like a gzip member (RFC 1952).
absl::StatusOr<bool> IsGzipped(const RandomAccessFile& file);

// A reader that inflates a gzipped file from its start. Consecutive members count as one file, and zeros after the last
// one are padding. The file is read in chunks, so a damaged file does not cause a large allocation. `file` must outlive
// the reader. Not thread-safe.
class GzipReader {
 public:
  // `name` is used in error messages.
  GzipReader(const RandomAccessFile* file, std::string name);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Returns the next `n` bytes, fewer only at the end of the contents, and none after that.
  // Returns DataLoss for bytes that do not inflate, a wrong checksum, bytes after padding, or a file that ends too
  // early.
  absl::StatusOr<std::string> Read(uint64_t n);

 private:
  absl::Status FillInput();
  void SkipZeros();
  absl::Status Inflate(char* out, size_t capacity, size_t* produced);

  const RandomAccessFile* const file_;
  const std::string name_;
  const std::unique_ptr<z_stream_s> stream_;
  std::string input_;
  uint64_t file_offset_ = 0;
  // True between two members and at the end.
  bool member_ended_ = true;
  // True once a member, or padding, respectively, has begun.
  bool has_member_ = false;
  bool is_padded_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_GZIP_READER_H_
