#ifndef LOCKSTEP_CLI_GUESS_CSV_SAMPLE_H_
#define LOCKSTEP_CLI_GUESS_CSV_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The first rows of a csv file, and the file's guessed format.
struct CsvSample {
  char separator = ',';
  bool has_header = true;
  // The names in the header line, or one empty name for each column if there is no header line.
  std::vector<std::string> names;
  // The fields of each row, in UTF-8 without surrounding blanks. Each row has as many fields as `names`.
  std::vector<std::vector<std::string>> rows;
  // Number of lines in the sample whose number of fields is not that of `names`.
  int64_t damaged = 0;
  // True if `rows` contains all rows of the file.
  bool is_whole = true;
  // The number of rows in the file, estimated unless is_whole.
  int64_t file_rows = 0;
};

// Reads a sample. Returns errors from OpenDataFile, and InvalidArgument if there are fewer than two rows or columns, or
// if the first line has another number of fields than most lines.
absl::StatusOr<CsvSample> SampleCsv(FileSystem* fs, const std::string& path);

// Returns true if a text is a finite number.
bool IsNumber(const std::string& text);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_GUESS_CSV_SAMPLE_H_
