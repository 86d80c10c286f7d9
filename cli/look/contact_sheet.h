#ifndef LOCKSTEP_CLI_LOOK_CONTACT_SHEET_H_
#define LOCKSTEP_CLI_LOOK_CONTACT_SHEET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep {

// Returns true for examples that can be drawn: [height, width, 1 or 3], or [height, width] in gray.
bool IsImage(const Shape& shape);

// Draws images in a grid, as a PNG file. Scales each image to about the same size by repeating or omitting pixels, and
// draws the number of its label below it. `images` holds consecutive images of `shape`. `labels` has one number for
// each image, or is empty. Values from `black` to `white` become shades of gray or colors; other values are clamped.
absl::StatusOr<std::string> ContactSheet(const Shape& shape, absl::Span<const float> images,
                                         absl::Span<const int64_t> labels, float black, float white);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LOOK_CONTACT_SHEET_H_
