#ifndef LOCKSTEP_WORKER_DATA_FORMATS_CSV_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_CSV_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/csv/csv_survey.h"
#include "lockstep/worker/data/records/record_format.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

struct CsvFiles {
  std::unique_ptr<RecordFormat> format;
  std::vector<RecordFile> files;
};

struct CsvOptions {
  bool labels_optional = false;
  bool labels_unchecked = false;
  // The training split and its files, used if a different split is opened. Its column order, statistics and categories
  // apply to that split. Null if the training split itself is opened or is not csv.
  const config::v1::InputConfig::Csv* train = nullptr;
  std::vector<std::string> train_paths;
  // Settings for reading the training split.
  CsvSurveyOptions survey;
};

// Reads the header line of each file, which must be the same in all files, and lays out the examples. Feature columns
// are combined in file order into one tensor: DT_FLOAT if any of them produces floats, otherwise DT_INT32 ids (INT,
// CATEGORY). With a header line, ignores columns that the configuration does not name. LABEL is a class: an integer or
// one of `category`. TARGET columns are numbers to predict. Numbers must be finite. An empty field (unless the column
// has `missing`) or a number of fields that differs from the header's counts as damage. Files may be compressed or in
// UTF-16 (OpenDataFile). With `labels_optional`, also reads files that lack the label, target, weight and ID columns
// (RecordFormat::has_labels). With `labels_unchecked`, an unreadable label, target or weight does not count as
// damage (DatasetOptions).
//
// Takes the properties of the training split that the columns need from config.prepared or, if that is empty, from a
// survey of the split's rows, and adds them to the digest. If the training split's files cannot be read, the columns
// are in the order of config.prepared or, failing that, of the file, and it is an error only if the configuration needs
// other properties.
//
// Errors: InvalidArgument names the column, or the file with a different header; DataLoss for a file without a header
// line; errors from OpenDataFile and SurveyCsv.
absl::StatusOr<CsvFiles> OpenCsv(FileSystem* fs, const std::vector<std::string>& paths,
                                 const config::v1::InputConfig::Csv& config, const CsvOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_CSV_H_
