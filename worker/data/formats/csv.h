#ifndef LOCKSTEP_WORKER_DATA_FORMATS_CSV_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_CSV_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/records/record_format.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

// The fields of one record of comma-separated values, in order (RFC 4180): a field that starts with a quote ends with
// one, and holds separators, line ends and doubled quotes in between.
class CsvFields {
 public:
  CsvFields(absl::string_view record, char separator) : rest_(record), separator_(separator) {}

  // False when there is no further field, or the record is damaged. `*field` is good until the next call.
  bool Next(absl::string_view* field);
  // A quoted field that does not end, or continues after its closing quote.
  bool damaged() const { return damaged_; }

 private:
  bool NextQuoted(absl::string_view* field);

  absl::string_view rest_;
  const char separator_;
  bool at_end_ = false;
  bool damaged_ = false;
  std::string unquoted_;
};

struct CsvFiles {
  std::unique_ptr<RecordFormat> format;
  std::vector<RecordFile> files;
};

// Reads the header line of each file, which must be the same, and lays out the examples. Feature columns come in the
// order of the file, in one tensor: DT_FLOAT when one of them is FLOAT, else DT_INT32 ids (INT, CATEGORY). With a
// header line, columns that the configuration does not name are not used. LABEL is a class, an integer or one of
// `category`; TARGET columns are numbers to be predicted. Numbers must be finite; an empty field is damage, and so is
// another number of fields than in the header. With `labels_optional`, files that lack the columns of label, targets
// and weight are read, too (RecordFormat::has_labels). Errors: InvalidArgument names the column, or the file with
// another header; DataLoss for a file without a header line.
absl::StatusOr<CsvFiles> OpenCsv(FileSystem* fs, const std::vector<std::string>& paths,
                                 const config::v1::InputConfig::Csv& config, bool labels_optional);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_CSV_H_
