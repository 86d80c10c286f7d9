#ifndef LOCKSTEP_WORKER_DATA_IMAGES_BYTE_IMAGE_H_
#define LOCKSTEP_WORKER_DATA_IMAGES_BYTE_IMAGE_H_

#include <cstdint>
#include <vector>

namespace lockstep {

// The largest image that can be decoded, in pixels. Decoding takes at most about ten bytes of memory per pixel.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

// An image as bytes, row-major [height, width, channels]. The channels are gray, or red, green and blue.
struct ByteImage {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  std::vector<uint8_t> pixels;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_IMAGES_BYTE_IMAGE_H_
