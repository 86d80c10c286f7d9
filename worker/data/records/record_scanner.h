#ifndef LOCKSTEP_WORKER_DATA_RECORDS_RECORD_SCANNER_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_RECORD_SCANNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/records/record_format.h"

namespace lockstep {

// A file of records.
struct RecordFile {
  std::string path;
  // The open file. May be null before OpenRecordDataset, which then opens it.
  std::shared_ptr<const RandomAccessFile> contents;
  // Start of the first record, after a header.
  uint64_t begin = 0;
  int64_t first_line = 1;
};

// The progress of reading a large file for the first time.
struct IndexProgress {
  std::string path;
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
};

struct ScanOptions {
  config::v1::InputConfig::OnDamage on_damage = config::v1::InputConfig::FAIL;
  // Called periodically and at the end. May be null.
  std::function<void(const IndexProgress&)> progress;
};

struct ScanResult {
  // Number of good records.
  int64_t records = 0;
  // Number of records without an example: damaged records skipped with SKIP_AND_COUNT, and records that the format
  // leaves out.
  int64_t damaged = 0;
  // Greatest class, or -1 if labels are not classes.
  int64_t max_label = -1;
  // CRC32C of the good records' ParsedCrc32c (4 bytes each, little-endian) in order.
  uint32_t crc32c = 0;
};

// The position of a record, and its ParsedCrc32c, which is 0 if it holds no example.
struct FoundRecord {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t crc32c = 0;
  bool is_example = true;
};

// Reads a whole file once, in pieces of bounded size, parses every record, and reports all positions to `found` in
// order. With SKIP_AND_COUNT, damaged records hold no example; they are counted, and the first few are logged. Records
// that the format excludes (LeftOut) hold no example either, but are only counted.
//
// Errors: DataLoss "<path>:<line>: ..." or "<path>: record <n> at byte <offset>: ..."; errors from the file and from
// `found`.
absl::StatusOr<ScanResult> ScanRecords(const RandomAccessFile& contents, const RecordFile& file,
                                       const RecordFormat& format, const ScanOptions& options,
                                       const std::function<absl::Status(const FoundRecord&)>& found);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_RECORD_SCANNER_H_
