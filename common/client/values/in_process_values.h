#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_IN_PROCESS_VALUES_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_IN_PROCESS_VALUES_H_

#include <memory>
#include <vector>

#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// The values of a chief in the same process, read from the chief's memory. Values rounded to 16 bits are decoded into
// this object's memory, once per version. Not thread-safe.
class InProcessValues {
 public:
  // `layout` must outlive this.
  explicit InProcessValues(const ParameterLayout* layout) : layout_(*layout) {}

  // Returns the address of each variable, unchanged until the next Take.
  const std::vector<const float*>* Take(const HandedOverValues& values);

 private:
  const ParameterLayout& layout_;
  std::shared_ptr<const AlignedBuffer> version_;
  AlignedBuffer decoded_;  // flat
  std::vector<const float*> variables_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_IN_PROCESS_VALUES_H_
