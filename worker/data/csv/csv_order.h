#ifndef LOCKSTEP_WORKER_DATA_CSV_CSV_ORDER_H_
#define LOCKSTEP_WORKER_DATA_CSV_CSV_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

// The order of a csv file's features and targets, as column names with ranges expanded.
struct CsvOrder {
  std::string path;
  // The configuration's columns, serialized.
  std::string configured;
  std::vector<std::string> features;
  std::vector<std::string> targets;
};

// Returns, for each name in `file.*of`, its index in `reference.*of`. `kind` is "feature" or "target", for error
// messages. If both have the same columns in a different order, matches them by name. If names are empty (for example
// without a header line) or repeated, columns keep their positions, and so do columns that are configured under names
// different from those in `reference`. If the names do not determine the order, returns InvalidArgument with both files
// and the first column that differs.
absl::StatusOr<std::vector<int64_t>> PlacesLike(const CsvOrder& reference, const CsvOrder& file,
                                                std::vector<std::string> CsvOrder::*of, const char* kind);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CSV_CSV_ORDER_H_
