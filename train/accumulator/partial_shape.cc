#include "lockstep/train/accumulator/partial_shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::train {

bool PartialShape::Matches(const Shape& shape) const {
  if (!has_rank()) return true;
  if (rank() != shape.rank()) return false;
  for (int i = 0; i < rank(); ++i) {
    if (!Allows(i, shape.dim(i))) return false;
  }
  return true;
}

std::string PartialShape::ToString() const {
  if (!has_rank()) return "?";
  const auto dimension = [](std::string* out, int64_t size) {
    absl::StrAppend(out, size == kUnknown ? "?" : absl::StrCat(size));
  };
  return absl::StrCat("[", absl::StrJoin(*dims_, ",", dimension), "]");
}

}  // namespace lockstep::train
