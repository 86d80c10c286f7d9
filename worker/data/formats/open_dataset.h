#ifndef LOCKSTEP_WORKER_DATA_FORMATS_OPEN_DATASET_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_OPEN_DATASET_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/data/registry/dataset_options.h"

namespace lockstep {

// Opens the examples of this split, normalized. `seed` affects synthetic data, and may affect registered inputs. The
// columns of a csv file are matched by name to the order of the train split's columns, if the train split's file can be
// read.
// Errors: NotFound names the split, the file or the registered input; InvalidArgument names the field of the
// configuration; DataLoss names the damaged file and what was expected.
absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const config::v1::InputConfig& config, absl::string_view split,
                                                     uint64_t seed, const DatasetOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_OPEN_DATASET_H_
