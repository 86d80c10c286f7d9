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
// finite, and ids must fit into 32 bits. Classes range from 0 to the greatest label. The digest covers the features as
// stored in the file, their type, the labels and the weights. Errors: InvalidArgument for an array that is missing or
// has the wrong type or shape; Unimplemented for Fortran order and other unsupported layouts (npy.h); DataLoss for
// damage, an invalid number, or arrays of different lengths. Reading features on disk returns errors from ArrayRows.

// Opens an npz file, whose path is `config.file`, and holds all of its arrays in memory.
absl::StatusOr<std::unique_ptr<Dataset>> OpenNpzDataset(FileSystem* fs, const config::v1::InputConfig::Npz& config,
                                                        const NumpyOptions& options);

// Opens npy files, whose paths are the fields of `config`. Large features stay on disk.
absl::StatusOr<std::unique_ptr<Dataset>> OpenNpyDataset(FileSystem* fs, const config::v1::InputConfig::Npy& config,
                                                        const NumpyOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_NUMPY_H_
