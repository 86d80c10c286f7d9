#ifndef LOCKSTEP_WORKER_DATA_IMAGES_DECODE_PNG_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_DECODE_PNG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/worker/data/images/byte_image.h"

namespace lockstep {

// Decodes a PNG file to as many channels as it has besides alpha, 1 or 3. See DecodeImage.
absl::StatusOr<ByteImage> DecodePng(absl::string_view encoded, int64_t max_pixels);

// Returns the version of the library in this process, e.g. "libpng 1.6.39".
std::string PngDecoderVersion();

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_DECODE_PNG_H_
