#ifndef LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_OPTIONS_H_
#define LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/records/array_rows.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

// Options for opening a configuration's data in one process.
struct DatasetOptions {
  // Must outlive the dataset.
  FileSystem* fs = FileSystem::Real();
  // Directory to which relative file names refer. If empty, they refer to the working directory.
  std::string base_directory;
  // If true, accepts data without labels if the format can tell that they are missing (csv, idx, tfrecord, npz, npy);
  // Dataset::has_labels then returns false. Used for predictions.
  bool labels_optional = false;
  // If true, a csv row whose label, target or weight cannot be read is an example, not damage. Its class is then -1,
  // its target 0, its weight 1. Used for predictions.
  bool labels_unchecked = false;
  // Directory in which the positions of records in csv, libsvm and tfrecord files, and the checksums of these files and
  // of large idx files, are kept between runs. If empty, every process reads each such file once at its start.
  std::string index_directory;
  // The maximum number of bytes of features that a split of npy or uncompressed idx files holds in memory, over all its
  // files. Larger features stay on disk.
  uint64_t held_bytes = ArrayRows::kHeldBytes;
  // Called periodically while a file is read for the first time. May be null.
  std::function<void(const IndexProgress&)> progress;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_OPTIONS_H_
