#ifndef LOCKSTEP_CLI_LOOK_CONTACT_SHEET_H_
#define LOCKSTEP_CLI_LOOK_CONTACT_SHEET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep {

// Returns true for examples that can be drawn: [height, width, 1 or 3], or [height, width] in grey.
bool IsImage(const Shape& shape);

// Draws images in a grid, as a PNG file: each scaled to about the same size, by repeating or leaving out pixels, with
// the number of its label below. `images` has one image of `shape` after the other; `labels` has one number for each,
// or is empty. Values from `black` to `white` become grey or colours; others count as the nearer of the two.
absl::StatusOr<std::string> ContactSheet(const Shape& shape, absl::Span<const float> images,
                                         absl::Span<const int64_t> labels, float black, float white);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_LOOK_CONTACT_SHEET_H_
