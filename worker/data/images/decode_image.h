#ifndef LOCKSTEP_WORKER_DATA_IMAGES_DECODE_IMAGE_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_DECODE_IMAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/worker/data/images/byte_image.h"

namespace lockstep {

// Decodes a PNG or JPEG file, recognized by its first bytes. `channels` is 1 or 3.
//
// For PNG, converts a palette to colors, keeps the upper 8 of 16 bits, drops alpha, and ignores gamma and color
// profiles. Interlaced files are supported. A JPEG is decoded with the accurate integer DCT and smooth upsampling of
// colors; it may be progressive. CMYK becomes R = C K / 255 for inverted CMYK (Adobe's) and (255 - C) (255 - K) / 255
// otherwise, rounded down. EXIF orientation and color profiles are ignored, as in TensorFlow and torchvision. Gray
// becomes three equal colors. Colors become gray as (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded down; for a
// JPEG in YCbCr, the luminance Y is used instead.
//
// Errors: DataLoss describes the damage, the size or the unsupported format, without a file name. A file that ends
// early counts as damaged, and so does a JPEG in which the decoder finds an invalid code, even if it could continue.
// Thread-safe.
absl::StatusOr<ByteImage> DecodeImage(absl::string_view encoded, int64_t channels,
                                      int64_t max_pixels = kMaxImagePixels);

// Returns, for example, "libpng 1.6.39, libjpeg-turbo 2.1.5". Other versions may decode different pixels.
std::string ImageDecoderVersion();

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_DECODE_IMAGE_H_
