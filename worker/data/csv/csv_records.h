#ifndef LOCKSTEP_WORKER_DATA_CSV_CSV_RECORDS_H_
#define LOCKSTEP_WORKER_DATA_CSV_CSV_RECORDS_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/data/csv/csv_fields.h"
#include "lockstep/worker/data/records/record_format.h"

namespace lockstep {

// Base class of formats for comma-separated values. Splits the data into records, which a derived class parses.
class CsvRecords : public RecordFormat {
 public:
  bool is_text() const override { return true; }
  absl::optional<Piece> NextPiece(absl::string_view data, bool at_end) const override;

  // Returns the first record in `data`, or, if a quoted field is not closed, the first line as damaged.
  static absl::optional<Piece> NextCsvPiece(absl::string_view data, bool at_end, char separator);

 protected:
  CsvRecords(const ExampleSpec& spec, bool has_weights, std::string fingerprint, bool has_labels, char separator)
      : RecordFormat(spec, has_weights, std::move(fingerprint), has_labels), separator_(separator) {}

  char separator() const { return separator_; }

 private:
  const char separator_;
};

// Returns the error for a record that has `found` fields instead of `expected`.
absl::Status WrongFieldCount(size_t found, size_t expected, char separator);

// Calls `f(i, field)` for each field of a record of `count` fields, until a call fails. Returns DataLoss for a wrong
// number of fields or a misplaced quote, and errors from `f`.
template <typename F>
absl::Status ForEachCsvField(absl::string_view record, char separator, size_t count, F f) {
  CsvFields fields(record, separator);
  absl::string_view field;
  size_t i = 0;
  for (; fields.Next(&field); ++i) {
    if (i < count) RETURN_IF_ERROR(f(i, field));
  }
  if (fields.damaged()) return absl::DataLossError(absl::StrCat("field ", i, " has a quote in a wrong place"));
  if (i == count) return absl::OkStatus();
  return WrongFieldCount(i, count, separator);
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CSV_CSV_RECORDS_H_
