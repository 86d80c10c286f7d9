#ifndef LOCKSTEP_WORKER_DATA_OPEN_DATASET_H_
#define LOCKSTEP_WORKER_DATA_OPEN_DATASET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/file_system.h"
#include "proto/input.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/record_scanner.h"

namespace lockstep {

struct DatasetOptions {
  // Must outlive the dataset.
  FileSystem* fs = FileSystem::Real();
  // Relative file names start here; empty: the working directory.
  std::string base_directory;
  // Where the places of records in csv, libsvm and tfrecord files, and the checksums of these and of large idx files,
  // are kept from run to run; empty: nowhere, every process reads such a file once at its start.
  std::string index_directory;
  // Called now and then while a file is read for the first time. May be null.
  std::function<void(const IndexProgress&)> progress;
};

// The examples of the split of this name, normalized. `seed` matters to synthetic data alone.
// Errors: NotFound names the split, or the file; InvalidArgument names the field of the configuration;
// DataLoss names the damaged file and what was expected.
absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const InputConfig& config, absl::string_view split, uint64_t seed,
                                                     const DatasetOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_OPEN_DATASET_H_
