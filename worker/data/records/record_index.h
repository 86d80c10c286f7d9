#ifndef LOCKSTEP_WORKER_DATA_RECORDS_RECORD_INDEX_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_RECORD_INDEX_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/records/record_format.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

struct IndexOptions {
  // Directory in which indexes are kept between runs. If empty, they are kept only in memory.
  std::string directory;
  ScanOptions scan;
};

// The positions of a file's records (rows), for random access. Some rows hold no example. The index is built by reading
// the file once and is then kept in a separate file. That file is reused as long as the data (its DataIdentity), the
// format and its options are the same and the checksum is correct; otherwise, it is rebuilt. A directory that is not
// writable causes only a warning. Several hosts may share a directory: an index is read back before it is renamed, so
// that another host's index is never mistaken for it. Small indexes are held in memory, and large ones are read in
// ranges. Constant, thread-safe.
//
// The file, little-endian: for each row its offset (8 bytes), size (4) and ParsedCrc32c (4); the numbers of the rows
// without an example (8 each), ascending; then the trailer: DataIdentity (44), number of examples (8) and of rows
// without one (8), greatest label (8), ScanResult::crc32c (4), CRC32C of everything before the trailer (4) and of the
// preceding part of the trailer (4).
class RecordIndex {
 public:
  struct Record {
    uint64_t offset;
    uint32_t size;
    // ParsedCrc32c.
    uint32_t crc32c;
  };

  // Loads or builds the index of an open file, `contents`. Returns errors from ScanRecords.
  static absl::StatusOr<std::unique_ptr<RecordIndex>> Open(FileSystem* fs, const RandomAccessFile& contents,
                                                           const RecordFile& file, const RecordFormat& format,
                                                           const IndexOptions& options);

  const ScanResult& summary() const { return summary_; }
  // Return the numbers of examples and of rows.
  int64_t size() const { return summary_.records; }
  int64_t rows() const { return summary_.records + summary_.damaged; }

  // Returns the row that holds an example, which must be in [0, size()).
  int64_t RowOf(int64_t example) const;
  // Returns the example in a row, or -1 if the row holds none. The row must be in [0, rows()).
  int64_t ExampleOf(int64_t row) const;

  // `row` must be in [0, rows()).
  absl::StatusOr<Record> Get(int64_t row) const;

 private:
  class Builder;
  RecordIndex() = default;

  static absl::StatusOr<std::unique_ptr<RecordIndex>> Load(FileSystem* fs, const std::string& path,
                                                           const std::string& expected_identity, uint64_t data_bytes);

  // Reads the numbers of the rows without an example, which begin at byte `begin` of file_, and extends `*crc`.
  absl::Status LoadRowsWithoutExample(uint64_t begin, uint32_t* crc);

  ScanResult summary_;
  // The entries. Empty if they are in `file_`.
  std::string entries_;
  std::unique_ptr<RandomAccessFile> file_;
  // The rows without an example, ascending.
  std::vector<int64_t> without_example_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_RECORD_INDEX_H_
