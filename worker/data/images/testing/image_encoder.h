#ifndef LOCKSTEP_WORKER_DATA_IMAGES_TESTING_IMAGE_ENCODER_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_TESTING_IMAGE_ENCODER_H_

#include <cstdint>
#include <string>

#include "lockstep/worker/data/images/byte_image.h"

namespace lockstep {

// Returns an image whose bytes depend on their positions and on `seed`. The bytes form gradients, which JPEG preserves.
ByteImage TestImage(int64_t height, int64_t width, int64_t channels, int seed = 0);

struct PngEncoding {
  // 8 or 16. With 16 bits, the upper byte of each sample is the image's byte, and the lower byte is 0x7f.
  int bit_depth = 8;
  bool interlaced = false;
  // Adds an alpha channel.
  bool alpha = false;
  // Writes indices into a palette of at most 256 colors.
  bool palette = false;
};
std::string EncodePng(const ByteImage& image, const PngEncoding& encoding = {});

struct JpegEncoding {
  int quality = 90;
  bool progressive = false;
  // The colors are stored as C, M and Y. K is 255 - 100, which Adobe's inverted CMYK stores as 155.
  bool cmyk = false;
};
std::string EncodeJpeg(const ByteImage& image, const JpegEncoding& encoding = {});

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_TESTING_IMAGE_ENCODER_H_
