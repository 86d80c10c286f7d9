#ifndef LOCKSTEP_WORKER_DATA_ROW_SUBSET_H_
#define LOCKSTEP_WORKER_DATA_ROW_SUBSET_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/data/dataset.h"

namespace lockstep {

// Returns true for the rows of "test" that InputConfig.test_fraction takes from "train". `row` is the row's number in
// the files. `fraction` must be in [0, 1). A pure function based on Philox4x32-10.
bool IsTestRow(uint64_t seed, int64_t row, double fraction);

// Returns a dataset of those rows of `dataset` whose numbers `selects` accepts, in order. It uses 8 bytes for each of
// its examples, plus 8 bytes for each of its rows if there are rows without an example. Its digest depends on `dataset`
// and on the selected rows. Returns InvalidArgument if no example is left.
absl::StatusOr<std::unique_ptr<Dataset>> SelectRows(std::unique_ptr<Dataset> dataset,
                                                    const std::function<bool(int64_t row)>& selects);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_ROW_SUBSET_H_
