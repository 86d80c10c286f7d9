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
// For PNG, converts a palette to colours, keeps the upper 8 of 16 bits, drops alpha, and ignores gamma and colour
// profiles. Interlaced files are supported. A JPEG is decoded with the accurate integer DCT and smooth upsampling of
// colours; it may be progressive. CMYK becomes R = C K / 255 for inverted CMYK (Adobe's) and (255 - C) (255 - K) / 255
// otherwise, rounded down; the orientation of EXIF and colour profiles are ignored, as by TensorFlow and torchvision.
// Grey becomes three equal colours. Colours become grey as (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded down;
// for a JPEG in YCbCr, the luminance Y is used instead.
//
// Errors: DataLoss describes the damage, the size or the unsupported format, without a file name. A file that ends
// early is damaged, and so is a JPEG in which the decoder finds a wrong code, even if it could continue. Thread-safe.
absl::StatusOr<ByteImage> DecodeImage(absl::string_view encoded, int64_t channels,
                                      int64_t max_pixels = kMaxImagePixels);

// Returns, for example, "libpng 1.6.39, libjpeg-turbo 2.1.5". Other versions may decode different pixels.
std::string ImageDecoderVersion();

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_DECODE_IMAGE_H_
