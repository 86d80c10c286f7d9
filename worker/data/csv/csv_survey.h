#ifndef LOCKSTEP_WORKER_DATA_CSV_CSV_SURVEY_H_
#define LOCKSTEP_WORKER_DATA_CSV_CSV_SURVEY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/csv/csv_column.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

// Limits on the categories that a survey lists: their number in a column, and the bytes of all of them.
inline constexpr size_t kMaxListedCategories = 65536;
inline constexpr size_t kMaxPreparedBytes = 1 << 20;

struct CsvSurveyOptions {
  ScanOptions scan;
  // Returns true for the rows that the survey includes, numbered from 0 over all files. If null, all rows are included.
  std::function<bool(int64_t row)> counts;
};

// Reads the rows of the open files, which must have these columns. Returns the properties of the training split that
// the columns need: means and standard deviations (of the population, in double precision, in the order of the rows),
// and the categories of each CATEGORY column without a list, sorted bytewise. With `lists_labels`, also returns the
// categories of the LABEL. The result depends only on the rows. Returns errors from ScanRecords, and InvalidArgument if
// there are too many categories or no rows.
absl::StatusOr<std::vector<config::v1::InputConfig::Csv::Prepared>> SurveyCsv(const std::vector<RecordFile>& files,
                                                                              const std::vector<CsvColumn>& columns,
                                                                              char separator, bool lists_labels,
                                                                              const CsvSurveyOptions& options);

// Returns the text of the LABEL in the first undamaged record that has one, or an empty string if there is none. Looks
// only at the beginning of each file.
absl::StatusOr<std::string> FirstCsvLabel(const std::vector<RecordFile>& files, const std::vector<CsvColumn>& columns,
                                          char separator);

// Returns the key (Prepared.column) of each column. This is the column's name if no other column has the same name.
// Otherwise, for example in a range without a header line, it is "label" for the LABEL, and the number of features
// before the column for other columns.
std::vector<std::string> PreparedKeys(const std::vector<CsvColumn>& columns);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CSV_CSV_SURVEY_H_
