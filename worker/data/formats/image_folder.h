#ifndef LOCKSTEP_WORKER_DATA_FORMATS_IMAGE_FOLDER_H_
#define LOCKSTEP_WORKER_DATA_FORMATS_IMAGE_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/data/records/kept_checksum.h"
#include "lockstep/worker/data/records/record_scanner.h"

namespace lockstep {

struct ImageFolderOptions {
  // Determines where the examples' checksums are kept (ImageChecksums).
  ChecksumOptions checksum;
  config::v1::InputConfig::OnDamage on_damage = config::v1::InputConfig::FAIL;
  // See ListImages.
  bool labels_optional = false;
  // The training split's classes if a different split is opened and config.class_name is empty.
  std::vector<std::string> train_classes;
};

// Opens the images in the class folders of config.folder, in the order of ListImages, decoded and converted to
// config.form. Each file is a row, whose ID is the file's name. A file that is damaged or not an image counts as
// damage. Files are read on demand, but opening the folder decodes all images unless their checksums were kept. The
// digest covers the pixels and the labels; the classes are prepared properties (Dataset::AddPreparation) of the column
// "label".
//
// Errors: any from ListImages and ImageForm; DataLoss "<folder>/<name>: ..." for an image that is damaged or has
// changed since it was opened.
absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(FileSystem* fs, const config::v1::InputConfig::Images& config,
                                                         const ImageFolderOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_IMAGE_FOLDER_H_
