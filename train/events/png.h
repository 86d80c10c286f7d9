#ifndef LOCKSTEP_TRAIN_EVENTS_PNG_H_
#define LOCKSTEP_TRAIN_EVENTS_PNG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep {

// Returns a PNG file (ISO/IEC 15948) with 8 bits per channel. `pixels` is [height, width, channels], row-major, with 1
// (gray), 2 (gray, alpha), 3 (RGB) or 4 (RGBA) channels. With the same zlib, equal pixels produce equal files. Returns
// InvalidArgument naming the value that is out of range, or both sizes if the number of pixels is wrong.
absl::StatusOr<std::string> EncodePng(int64_t height, int64_t width, int64_t channels,
                                      absl::Span<const uint8_t> pixels);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVENTS_PNG_H_
