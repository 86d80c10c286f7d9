#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_STORED_VARIABLE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_STORED_VARIABLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Where a checkpoint keeps the number of updates, as TensorFlow does: an int64 scalar.
inline constexpr char kGlobalStepKey[] = "global_step";
// Where it keeps a serialized v1::SessionState, as uint8; absent when no program follows the run.
inline constexpr char kSessionStateKey[] = "lockstep/session_state";

// Whether `checkpoint` holds under `key` what the model declares, which is of float32.
// Errors: NotFound; InvalidArgument names the checkpoint, the key, both types and both shapes.
absl::Status CheckStoredVariable(const TensorReader& checkpoint, absl::string_view key, v1::DataType dtype,
                                 const Shape& shape);

// Whether the values that were read from `key` are finite, as those that a run starts from must be: the run would save
// what is not, and restore it. InvalidArgument names the checkpoint, the key and the first element that is not.
absl::Status CheckFinite(const TensorReader& checkpoint, absl::string_view key, absl::Span<const float> values);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_STORED_VARIABLE_H_
