#ifndef LOCKSTEP_WORKER_DATA_IMAGES_DECODE_JPEG_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_DECODE_JPEG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/worker/data/images/byte_image.h"

namespace lockstep {

// Decodes a JPEG file to 1 channel if it is gray, or if `wants_grey` is true and the file has a luminance component,
// and to 3 channels otherwise. See DecodeImage.
absl::StatusOr<ByteImage> DecodeJpeg(absl::string_view encoded, bool wants_grey, int64_t max_pixels);

// Returns the version of the library's headers, e.g. "libjpeg-turbo 2.1.5".
std::string JpegDecoderVersion();

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_DECODE_JPEG_H_
