#ifndef LOCKSTEP_WORKER_DATA_CSV_CSV_SOURCE_H_
#define LOCKSTEP_WORKER_DATA_CSV_CSV_SOURCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/csv/csv_column.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

// A set of open csv files that have the same columns.
struct CsvSource {
  // Each file begins at its first record, after the header line.
  std::vector<RecordFile> files;
  // The names in the header line, or the first record's fields if there is no header line.
  std::vector<std::string> header;
  char separator = ',';
};

// Opens the files and reads their header lines. Errors: InvalidArgument for an invalid separator, and for a file whose
// header differs from the first one's; DataLoss for a file without a header line; errors from OpenDataFile.
absl::StatusOr<CsvSource> OpenCsvSource(FileSystem* fs, const std::vector<std::string>& paths,
                                        const config::v1::InputConfig::Csv& config);

// Returns the files' columns, in order, with unused columns as SKIP. With `labels_optional`, label, targets, weight and
// ID may be absent. Errors: InvalidArgument naming the column, the file and its header.
absl::StatusOr<std::vector<CsvColumn>> ColumnsOf(const CsvSource& source, const config::v1::InputConfig::Csv& config,
                                                 bool labels_optional);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CSV_CSV_SOURCE_H_
