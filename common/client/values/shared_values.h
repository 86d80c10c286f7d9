#ifndef LOCKSTEP_COMMON_CLIENT_VALUES_SHARED_VALUES_H_
#define LOCKSTEP_COMMON_CLIENT_VALUES_SHARED_VALUES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/memory/shared_memory.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The versions of the values that a worker reads in the chief's memory. The chief cycles through a few buffers, so
// mappings are cached. Not thread-safe.
class SharedValues {
 public:
  // `layout` must outlive this.
  explicit SharedValues(const ParameterLayout* layout) : layout_(*layout) {}

  // Returns the address of each variable in the memory, which stays mapped until three other versions have been
  // requested. Errors: InvalidArgument if the size does not match the model; Unavailable if the memory cannot be
  // reached (any more).
  absl::StatusOr<const std::vector<const float*>*> Find(const v1::SharedMemoryHandle& handle);

 private:
  struct Version {
    std::unique_ptr<SharedMemory> memory;
    std::vector<const float*> variables;
  };

  const ParameterLayout& layout_;
  // Most recently requested version last.
  std::vector<std::unique_ptr<Version>> versions_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_VALUES_SHARED_VALUES_H_
