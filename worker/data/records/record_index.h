#ifndef LOCKSTEP_WORKER_DATA_RECORDS_RECORD_INDEX_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_RECORD_INDEX_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/records/record_format.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

struct IndexOptions {
  // Where indexes are kept from run to run; empty: in memory only.
  std::string directory;
  ScanOptions scan;
};

// Where the records of one file are, so that any of them can be read alone. Built by reading the file once, then
// kept in a file of its own, which is used again while the data (their DataIdentity), the format and its options are
// the same and the checksum is right, and rebuilt otherwise. A directory that cannot be written to costs only
// a warning. Several hosts may share one: an index is read back before it gets its name, so that another host's
// is never mistaken for it. Small indexes are held in memory, large ones read in ranges. Constant, thread-safe.
//
// The file, little-endian: for each record its offset (8 bytes), size (4) and ParsedCrc32c (4); then the trailer:
// DataIdentity (44), records (8), damaged ones (8), greatest label (8), ScanResult::crc32c (4), CRC32C of the entries
// (4) and of the trailer up to here (4).
class RecordIndex {
 public:
  struct Record {
    uint64_t offset;
    uint32_t size;
    // ParsedCrc32c.
    uint32_t crc32c;
  };

  // `contents` is the file, open. Errors: those of ScanRecords.
  static absl::StatusOr<std::unique_ptr<RecordIndex>> Open(FileSystem* fs, const RandomAccessFile& contents,
                                                           const RecordFile& file, const RecordFormat& format,
                                                           const IndexOptions& options);

  const ScanResult& summary() const { return summary_; }
  int64_t size() const { return summary_.records; }

  // `i` is in [0, size()).
  absl::StatusOr<Record> Get(int64_t i) const;

 private:
  class Builder;
  RecordIndex() = default;

  static absl::StatusOr<std::unique_ptr<RecordIndex>> Load(FileSystem* fs, const std::string& path,
                                                           const std::string& expected_identity, uint64_t data_bytes);

  ScanResult summary_;
  // The entries, or empty and in `file_`.
  std::string entries_;
  std::unique_ptr<RandomAccessFile> file_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_RECORD_INDEX_H_
