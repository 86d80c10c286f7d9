#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_STORED_VARIABLE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_STORED_VARIABLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Key of the number of updates, as in TensorFlow: an int64 scalar.
inline constexpr char kGlobalStepKey[] = "global_step";
// Key of a serialized v1::SessionState, as uint8. Absent if no program drives the run.
inline constexpr char kSessionStateKey[] = "lockstep/session_state";
// Key of the next positions of the input streams, int64 [streams]. Absent if batches belong to slots of steps.
inline constexpr char kStreamPositionsKey[] = "lockstep/stream_positions";

// Checks that `checkpoint` holds a tensor under `key` with the type that the model declares, which must be one of a
// variable's, and with its shape. Errors: NotFound; InvalidArgument, which names the checkpoint, the key, both types
// and both shapes.
absl::Status CheckStoredVariable(const TensorReader& checkpoint, absl::string_view key, v1::DataType dtype,
                                 const Shape& shape);

// Checks that the values read from `key` are finite. A run must start from finite values, or it would save and restore
// values that are not finite. InvalidArgument names the checkpoint, the key and the first element that is not finite.
absl::Status CheckFinite(const TensorReader& checkpoint, absl::string_view key, absl::Span<const float> values);

// Checks that the bytes read from `key`, which is a bool tensor, are 0 or 1. InvalidArgument names the checkpoint and
// the key.
absl::Status CheckBools(const TensorReader& checkpoint, absl::string_view key, absl::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_STORED_VARIABLE_H_
