#ifndef LOCKSTEP_WORKER_DATA_FORMATS_TF_EXAMPLE_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_TF_EXAMPLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/records/record_format.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

// Creates the format for TFRecord files of tf.train.Example (proto/lockstep/v1/example.proto). The first readable
// record determines the kinds of feature and label, and all records must have the same kinds. A feature with one bytes
// value, such as an image, has one byte per element, scaled to [0, 1]. Floats are unchanged. Integers are ids,
// DT_INT32. With config.image, the feature is a PNG or JPEG file in one bytes value, which is converted to that form
// (ImageForm). A label of one integer is a class; floats are targets. A damaged length makes the rest of a file
// unreadable; a damaged payload costs one record. Errors: InvalidArgument names the field; NotFound; DataLoss if no
// record has both keys (or, with FAIL, the first one is damaged). With `labels_optional`, a first record without the
// label's key means that the data has no labels (RecordFormat::has_labels).
//
// Opens only those `files` that it reads (RecordFile::contents). Files may be compressed (OpenDataFile).
absl::StatusOr<std::unique_ptr<RecordFormat>> OpenTfExampleFormat(FileSystem* fs, std::vector<RecordFile>* files,
                                                                  const config::v1::InputConfig::TfRecord& config,
                                                                  config::v1::InputConfig::OnDamage on_damage,
                                                                  bool labels_optional = false);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_TF_EXAMPLE_H_
