#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_SHARED_VALUES_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_SHARED_VALUES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The versions of the values that a worker reads in the chief's memory. The chief uses a few buffers in turn, so those
// that were mapped are kept. Not thread-safe.
class SharedValues {
 public:
  // `layout` must outlive this.
  explicit SharedValues(const ParameterLayout* layout) : layout_(*layout) {}

  // Where each variable lies in the memory, which is mapped until three others have been asked for since. Errors:
  // InvalidArgument when its size is not the model's; Unavailable when it is not within reach (any more).
  absl::StatusOr<const std::vector<const float*>*> Find(const v1::SharedMemoryHandle& handle);

 private:
  struct Version {
    std::unique_ptr<SharedMemory> memory;
    std::vector<const float*> variables;
  };

  const ParameterLayout& layout_;
  // The one asked for last is the last.
  std::vector<std::unique_ptr<Version>> versions_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_SHARED_VALUES_H_
