#ifndef LOCKSTEP_WORKER_DATA_FORMATS_CSV_ORDER_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_CSV_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

// Which column of a csv file is which feature, and which target: their names, ranges expanded.
struct CsvOrder {
  std::string path;
  // The configuration's columns, serialized.
  std::string configured;
  std::vector<std::string> features;
  std::vector<std::string> targets;
};

// For each of the names `of` one kind ("feature" or "target") in `file`, its index among those that `reference` has:
// the same columns in another order are matched by name. Where names are absent or repeated, as they are without a
// header line, columns keep their places; so do columns that are configured under other names than those of
// `reference`. InvalidArgument names both files and the first column that differs when the names do not tell which
// column is which.
absl::StatusOr<std::vector<int64_t>> PlacesLike(const CsvOrder& reference, const CsvOrder& file,
                                                std::vector<std::string> CsvOrder::*of, const char* kind);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_CSV_ORDER_H_
