#ifndef LOCKSTEP_SERVER_PS_VERSIONS_PUBLISHED_VALUES_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_PUBLISHED_VALUES_H_

#include <memory>

#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/float_chunks.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// One version of all values as workers get them. Shared by all who read it; unchanged once the version is current.
struct PublishedValues {
  // Flat float32: what the chief updates and saves.
  std::shared_ptr<const AlignedBuffer> flat;
  // The trainable variables rounded to `type`, a 16-bit one, at the same element offsets; null when workers get
  // float32.
  std::shared_ptr<const AlignedBuffer> encoded;
  v1::DataType type = v1::DT_FLOAT;

  // Elements [segment.offset, segment.offset + segment.elements) of its variable, in memory of this.
  FloatChunks Segment(const ParameterLayout& layout, const ParameterLayout::Segment& segment) const;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_PUBLISHED_VALUES_H_
