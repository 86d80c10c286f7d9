#ifndef LOCKSTEP_WORKER_DATA_CSV_CSV_COLUMN_H_
#define LOCKSTEP_WORKER_DATA_CSV_CSV_COLUMN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/records/record_format.h"

namespace lockstep {

// A column of a csv file, including how its fields become part of an example. A value type.
struct CsvColumn {
  using Csv = config::v1::InputConfig::Csv;

  std::string name;
  Csv::Type type = Csv::SKIP;
  // Index of the column's first feature element, or of the column among the targets.
  int64_t place = 0;
  // Maps the text of each category to its index.
  absl::flat_hash_map<std::string, int32_t> category;
  // If above 0, the number of hash buckets: a text's index is its hash modulo this number.
  int64_t hash_buckets = 0;
  bool one_hot = false;
  bool standardize = false;
  Csv::Missing::KindCase missing = Csv::Missing::KIND_NOT_SET;
  // The text that replaces a missing field.
  std::string default_text;
  // Statistics of the column in the training split.
  float mean = 0;
  float stddev = 1;

  bool is_feature() const { return type == Csv::FLOAT || type == Csv::INT || type == Csv::CATEGORY; }
  // Returns true for a column that may be absent from a file used for prediction.
  bool is_answer() const { return type == Csv::LABEL || type == Csv::TARGET || type == Csv::WEIGHT; }
  // Returns the number of feature elements that the column contributes.
  int64_t width() const;
  // Returns true if the column's features are floats although its type is not FLOAT.
  bool makes_floats() const { return standardize || one_hot || missing == Csv::Missing::kMean; }
  bool needs_moments() const { return standardize || missing == Csv::Missing::kMean; }
  bool needs_categories() const { return type == Csv::CATEGORY && category.empty() && hash_buckets == 0; }
};

// Creates a column from its configuration. Returns InvalidArgument naming the column and what is wrong with it.
absl::StatusOr<CsvColumn> MakeCsvColumn(const config::v1::InputConfig::Csv::Column& config);

// Adds the categories in order. Returns InvalidArgument if one is listed twice.
absl::Status SetCategories(absl::Span<const std::string> categories, CsvColumn* column);

// Stores a record's field. Ignores fields of unused columns. Strips blanks around the field, and reads text that is not
// UTF-8 as Latin-1. Errors: DataLoss naming the column, the text found and the text expected; LeftOut if the value is
// missing and the column skips such records.
absl::Status ParseCsvField(const CsvColumn& column, absl::string_view field, const ExampleSlot& out);

// Returns the number in a field of a FLOAT or INT column before standardization, or nullopt if the column's mean must
// be used instead. Returns the same errors as ParseCsvField.
absl::StatusOr<absl::optional<float>> ParseCsvNumber(const CsvColumn& column, absl::string_view field);

// Returns the text of a CATEGORY or LABEL field, in UTF-8 and without surrounding blanks. Returns the same errors as
// ParseCsvField.
absl::StatusOr<std::string> ParseCsvText(const CsvColumn& column, absl::string_view field);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CSV_CSV_COLUMN_H_
