#include "lockstep/common/tensor/bools.h"

#include "absl/algorithm/container.h"

namespace lockstep {

bool AreBools(absl::string_view bytes) {
  return absl::c_all_of(bytes, [](char byte) { return (byte & ~1) == 0; });
}

}  // namespace lockstep
