#include "lockstep/common/client/values/in_process_values.h"

#include "lockstep/common/tensor/float_chunks.h"

namespace lockstep {

const std::vector<const float*>* InProcessValues::Take(const HandedOverValues& values) {
  if (values.flat == version_) return &variables_;
  version_ = values.flat;
  variables_.clear();
  for (const auto& variable : layout_.variables()) {
    if (values.encoded == nullptr || !variable.spec.trainable()) {
      variables_.push_back(version_->as<float>() + variable.flat_offset);
      continue;
    }
    if (decoded_.size() == 0) decoded_ = AlignedBuffer(static_cast<size_t>(layout_.flat_elements()) * sizeof(float));
    float* const decoded = decoded_.as<float>() + variable.flat_offset;
    FloatChunks(values.type, values.encoded + variable.flat_offset, variable.elements)
        .CopyTo(0, variable.elements, decoded);
    variables_.push_back(decoded);
  }
  return &variables_;
}

}  // namespace lockstep
