#ifndef LOCKSTEP_CLI_GUESS_CSV_GUESS_H_
#define LOCKSTEP_CLI_GUESS_CSV_GUESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/cli/guess/csv_sample.h"
#include "lockstep/config/v1/input.pb.h"

namespace lockstep {

// With fewer rows, no split "test" is made: a part could be empty.
inline constexpr int64_t kLeastRowsToDivide = 10;

// A proposal for reading one column of a csv file, with its reason.
struct ColumnGuess {
  config::v1::InputConfig::Csv::Column column;
  // A phrase for the user, such as "a number, standardized".
  std::string reason;
};

struct CsvGuess {
  std::vector<ColumnGuess> columns;
  // Index of the column to predict, and its number of classes, which is 0 for a numeric column.
  size_t label = 0;
  int64_t classes = 0;
  // Mean and standard deviation of a numeric column to predict.
  double target_mean = 0;
  double target_deviation = 1;
};

// Guesses the columns' types from a sample of the rows. `label` names the column to predict. If it is empty, chooses a
// column with a common label name, or else the last column. Returns InvalidArgument if the label is absent or cannot be
// predicted, or if no feature is left.
absl::StatusOr<CsvGuess> GuessColumns(const CsvSample& sample, absl::string_view label);

// Returns a complete configuration, in text format with comments, that trains a perceptron on the file. `path` is the
// file's path in the configuration.
std::string ConfigurationFor(const CsvSample& sample, const CsvGuess& guess, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_GUESS_CSV_GUESS_H_
