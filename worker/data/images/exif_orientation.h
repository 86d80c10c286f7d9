#ifndef LOCKSTEP_WORKER_DATA_IMAGES_EXIF_ORIENTATION_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_EXIF_ORIENTATION_H_

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns the orientation in a JPEG file's EXIF data: 1 if the pixels are upright, 2 to 8 if an image viewer would
// rotate or mirror them. Returns 1 if the orientation is absent or unreadable.
int ExifOrientation(absl::string_view encoded);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_EXIF_ORIENTATION_H_
