#ifndef LOCKSTEP_WORKER_DATA_CSV_CSV_FIELDS_H_
#define LOCKSTEP_WORKER_DATA_CSV_CSV_FIELDS_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// The fields of one record of comma-separated values, in order (RFC 4180). A field that starts with a quote also ends
// with one, and may contain separators, line ends and doubled quotes in between. Blanks around the quotes are not part
// of the field.
class CsvFields {
 public:
  CsvFields(absl::string_view record, char separator) : rest_(record), separator_(separator) {}

  // Returns false if there are no more fields or the record is damaged. `*field` is valid until the next call.
  bool Next(absl::string_view* field);
  // Returns true if a quoted field is not closed, or continues after its closing quote.
  bool damaged() const { return damaged_; }

 private:
  bool NextQuoted(absl::string_view* field);

  absl::string_view rest_;
  const char separator_;
  bool at_end_ = false;
  bool damaged_ = false;
  std::string unquoted_;
};

// Returns true for a space or tab that may pad a field.
bool IsCsvPadding(char c, char separator);
// Returns the number of padding characters at the start of `text`.
size_t PaddingBeforeQuote(absl::string_view text, char separator);

// Returns the length of the first record, without its line end, taking quotes into account; npos if a quoted field is
// not closed.
size_t CsvRecordEnd(absl::string_view data, char separator);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CSV_CSV_FIELDS_H_
