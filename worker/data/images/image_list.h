#ifndef LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_LIST_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

struct ImageFile {
  // Relative to the folder: "cats/1.jpg".
  std::string name;
  // Index of its class.
  int32_t label = 0;
};

// A folder's image files, ordered by class and, within a class, bytewise by name.
struct ImageList {
  // The names of the classes. Empty if the folder contains images directly instead of class folders.
  std::vector<std::string> classes;
  std::vector<ImageFile> files;
};

// Returns the names of a folder's subfolders, sorted bytewise. Omits hidden ones, whose names begin with a dot. Errors:
// any from ListDirectory; NotFound says which folder is missing or not mounted.
absl::StatusOr<std::vector<std::string>> ListClasses(FileSystem* fs, const std::string& folder);

// Lists the image files in a folder that has a subfolder for each class. These are .png, .jpg and .jpeg files, with the
// suffix in upper or lower case, and files with suffixes of other image formats, which later count as damage. Omits
// hidden files and all others. Classes are in the order of `classes`, or sorted if it is empty. A class of `classes`
// without a subfolder has no images. If `labels_optional` is true and the folder has images but no subfolders, the
// images have no classes.
//
// Errors: InvalidArgument for a subfolder that is not a class, for a folder inside a class folder and, if `classes` is
// empty, for a class folder without images; NotFound if there are no images at all.
absl::StatusOr<ImageList> ListImages(FileSystem* fs, const std::string& folder, absl::Span<const std::string> classes,
                                     bool labels_optional);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_LIST_H_
