#ifndef LOCKSTEP_WORKER_DATA_FORMATS_NUMPY_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_NUMPY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/data/records/array_rows.h"
#include "lockstep/worker/data/records/kept_checksum.h"

namespace lockstep {

struct NumpyOptions {
  ChecksumOptions checksum;
  // See DatasetOptions.
  bool labels_optional = false;
  // See ArrayRows.
  uint64_t held_bytes = ArrayRows::kHeldBytes;
};

// NumPy arrays whose rows are examples, with the types listed in proto/lockstep/config/v1/input.proto. Numbers must be
// finite, and ids must fit into 32 bits. Classes are 0 .. the greatest label. The digest covers the features in the
// form in which the file has them, their type, the labels and the weights. Errors: InvalidArgument for an array that is
// missing or has the wrong type or shape; Unimplemented for Fortran order and the like (npy.h); DataLoss for damage, a
// number that is not allowed, and arrays of different lengths. Reading features on disk returns errors from ArrayRows.

// Holds all arrays in memory. `config.file` is the path.
absl::StatusOr<std::unique_ptr<Dataset>> OpenNpzDataset(FileSystem* fs, const config::v1::InputConfig::Npz& config,
                                                        const NumpyOptions& options);

// The fields of `config` are paths. Large features stay on disk.
absl::StatusOr<std::unique_ptr<Dataset>> OpenNpyDataset(FileSystem* fs, const config::v1::InputConfig::Npy& config,
                                                        const NumpyOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_NUMPY_H_
