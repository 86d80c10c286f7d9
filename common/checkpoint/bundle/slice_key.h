#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_SLICE_KEY_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_SLICE_KEY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

// Returns the index key of one slice of a partitioned variable, in TensorFlow's encoding (docs/checkpoint.md). It
// begins with a zero byte, so it never equals a variable's name.
std::string SliceKey(absl::string_view name, const v1::TensorSliceProto& slice);

inline bool IsSliceKey(absl::string_view key) { return !key.empty() && key.front() == '\0'; }

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_SLICE_KEY_H_
