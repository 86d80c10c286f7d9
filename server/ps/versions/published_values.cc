#include "lockstep/server/ps/versions/published_values.h"

namespace lockstep {

FloatChunks PublishedValues::Segment(const ParameterLayout& layout, const ParameterLayout::Segment& segment) const {
  if (encoded == nullptr || !layout.variables()[segment.variable].spec.trainable()) {
    return FloatChunks(flat->as<float>() + segment.flat_offset, segment.elements);
  }
  return FloatChunks(type, encoded->as<uint16_t>() + segment.flat_offset, segment.elements);
}

}  // namespace lockstep
