#ifndef LOCKSTEP_WORKER_DATA_IMAGES_EXIF_ORIENTATION_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_EXIF_ORIENTATION_H_

#include "absl/strings/string_view.h"

namespace lockstep {

// Returns the orientation that a JPEG file states in its EXIF data: 1 if its pixels are upright, 2 to 8 if a viewer
// turns or mirrors them. 1 for a file that states none, or none that can be read.
int ExifOrientation(absl::string_view encoded);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_EXIF_ORIENTATION_H_
