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

// The image files of a folder, in the order of the classes and, within a class, of the bytes of their names.
struct ImageList {
  // The names of the classes. Empty if the folder holds images and no classes.
  std::vector<std::string> classes;
  std::vector<ImageFile> files;
};

// Returns the names of a folder's folders, sorted bytewise, without hidden ones, whose names begin with a dot. Errors:
// those of ListDirectory; NotFound says which folder is missing or not mounted.
absl::StatusOr<std::vector<std::string>> ListClasses(FileSystem* fs, const std::string& folder);

// Lists the files of a folder that has a folder for each class: .png, .jpg and .jpeg in upper or lower case, and names
// of other image formats, which are damage later. Other files and hidden ones are left out. `classes` gives the order;
// if it is empty, classes are sorted. A class without a folder has no images. If `labels_optional` and the folder has
// images and no folders, they have no classes.
// Errors: InvalidArgument for a folder that is no class, and for one inside of a class; NotFound if there is no image.
absl::StatusOr<ImageList> ListImages(FileSystem* fs, const std::string& folder, absl::Span<const std::string> classes,
                                     bool labels_optional);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_IMAGE_LIST_H_
