#ifndef LOCKSTEP_WORKER_DATA_CSV_CSV_ORDER_H_
#define LOCKSTEP_WORKER_DATA_CSV_CSV_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

// The order of a csv file's features and targets: their columns' names, ranges expanded.
struct CsvOrder {
  std::string path;
  // The configuration's columns, serialized.
  std::string configured;
  std::vector<std::string> features;
  std::vector<std::string> targets;
};

// Returns, for each name in the member `of` of `file`, its index among the names of `reference`; `kind` is "feature" or
// "target", for errors. The same columns in another order are matched by name. If names are absent or repeated, as
// without a header line, columns keep their places; so do columns that are configured under other names than in
// `reference`. InvalidArgument names both files and the first column that differs if the names do not determine the
// order.
absl::StatusOr<std::vector<int64_t>> PlacesLike(const CsvOrder& reference, const CsvOrder& file,
                                                std::vector<std::string> CsvOrder::*of, const char* kind);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_CSV_CSV_ORDER_H_
