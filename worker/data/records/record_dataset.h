#ifndef LOCKSTEP_WORKER_DATA_RECORDS_RECORD_DATASET_H_
#define LOCKSTEP_WORKER_DATA_RECORDS_RECORD_DATASET_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/data/records/record_format.h"
#include "lockstep/worker/data/records/record_index.h"

namespace lockstep {

// Opens the records of one or several files, in order. Records are read on demand, so the data may be larger than
// memory unless it is compressed or in UTF-16 (OpenDataFile). If the format does not know the classes, they are 0 ..
// the greatest label in these files. Errors: any from OpenDataFile; DataLoss for a damaged record (unless it is
// skipped), and if no record is left.
absl::StatusOr<std::unique_ptr<Dataset>> OpenRecordDataset(FileSystem* fs, std::unique_ptr<RecordFormat> format,
                                                           std::vector<RecordFile> files, const IndexOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_RECORDS_RECORD_DATASET_H_
