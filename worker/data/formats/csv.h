#ifndef LOCKSTEP_WORKER_DATA_FORMATS_CSV_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_CSV_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/formats/csv_order.h"
#include "lockstep/worker/data/records/record_format.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

struct CsvFiles {
  std::unique_ptr<RecordFormat> format;
  std::vector<RecordFile> files;
};

// Reads the header line of each file, which must be the same, and lays out the examples. Feature columns are in the
// order of the file, in one tensor: DT_FLOAT if one of them is FLOAT, otherwise DT_INT32 ids (INT, CATEGORY). With a
// header line, columns that the configuration does not name are not used. LABEL is a class, an integer or one of
// `category`; TARGET columns are numbers to predict. Numbers must be finite; an empty field, or a number of fields
// other than the header's, is damage. With `labels_optional`, also reads files that lack the columns of label, targets
// and weight (RecordFormat::has_labels). With `order`, features and targets are in the order of PlacesLike, not of the
// file. Errors: InvalidArgument names the column, or the file with another header; DataLoss for a file without a header
// line.
absl::StatusOr<CsvFiles> OpenCsv(FileSystem* fs, const std::vector<std::string>& paths,
                                 const config::v1::InputConfig::Csv& config, bool labels_optional,
                                 const absl::optional<CsvOrder>& order = absl::nullopt);

// Returns the order of the columns of the file at `path`, for OpenCsv of another file. Errors: those of OpenCsv.
absl::StatusOr<CsvOrder> ReadCsvOrder(FileSystem* fs, const std::string& path,
                                      const config::v1::InputConfig::Csv& config);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_CSV_H_
