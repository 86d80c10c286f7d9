#ifndef LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_OPTIONS_H_
#define LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_OPTIONS_H_

#include <functional>
#include <string>

#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

// How the data of a configuration are opened in one process.
struct DatasetOptions {
  // Must outlive the dataset.
  FileSystem* fs = FileSystem::Real();
  // Relative file names start here; empty: the working directory.
  std::string base_directory;
  // Data without labels are read, too, where the format can tell (csv, idx, tfrecord, npz, npy); Dataset::has_labels
  // says so. For predictions.
  bool labels_optional = false;
  // Where the places of records in csv, libsvm and tfrecord files, and the checksums of these and of large idx files,
  // are kept from run to run; empty: nowhere, every process reads such a file once at its start.
  std::string index_directory;
  // Called now and then while a file is read for the first time. May be null.
  std::function<void(const IndexProgress&)> progress;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_OPTIONS_H_
