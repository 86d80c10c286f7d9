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
  // Keeps the checksums of examples (ImageChecksums).
  ChecksumOptions checksum;
  config::v1::InputConfig::OnDamage on_damage = config::v1::InputConfig::FAIL;
  // See ListImages.
  bool labels_optional = false;
  // The training split's classes if a different split is opened and config.class_name is empty.
  std::vector<std::string> train_classes;
};

// Opens the images in the class folders of config.folder, decoded and converted to config.form, in the order of
// ListImages. Each file is a row, whose ID is the file's name. A file that is damaged or not an image counts as damage.
// Files are read on demand, but opening decodes all images unless their checksums are kept. The digest covers the
// pixels and labels; the classes are prepared properties (Dataset::AddPreparation) of the column "label".
// Errors: any from ListImages and ImageForm; DataLoss "<folder>/<name>: ..." for a damaged image, or one that has
// changed since.
absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(FileSystem* fs, const config::v1::InputConfig::Images& config,
                                                         const ImageFolderOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_FORMATS_IMAGE_FOLDER_H_
