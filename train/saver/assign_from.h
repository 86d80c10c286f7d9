#ifndef LOCKSTEP_TRAIN_SAVER_ASSIGN_FROM_H_
#define LOCKSTEP_TRAIN_SAVER_ASSIGN_FROM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep::train {

// Functions that initialize a model from given values or from a checkpoint, like tf-slim's functions with the same
// names. An InitFunction is called if nothing was restored, after the variables' own initial values are set, and never
// for a resumed run.

struct InitialValues {
  // The values, in the model's order and in the shapes of its variables. Other variables keep their own initial values.
  std::vector<NamedTensor> values;
  // A report for display: what was loaded from where, what was not and why, and what else the checkpoint contains.
  std::string report;
};
using InitFunction = std::function<absl::StatusOr<InitialValues>(const v1::ModelSpec& model)>;

// Returns a function that sets variables, by name, to float32 values. A value with the variable's number of elements
// takes the variable's shape. A name may also be a prefix of exactly one variable's name ("w" for "weights"); the
// report says so.
//
// Errors returned by the function: InvalidArgument if no variable's name begins with a given name, or if several do and
// none equals it; if the number of elements or the type is wrong; and if two names denote the same variable.
InitFunction AssignFromValues(std::map<std::string, Tensor> values);

// The variable that takes a value, or a part of it.
struct AssignTarget {
  AssignTarget(std::string variable, std::vector<int64_t> offset = {})  // NOLINT: a name is a target
      : variable(std::move(variable)), offset(std::move(offset)) {}
  AssignTarget(const char* variable) : variable(variable) {}  // NOLINT: a name is a target

  std::string variable;
  // If empty, the variable takes the whole value. Otherwise it takes the part that begins at this offset, like a
  // partition.
  std::vector<int64_t> offset;
};
// Maps a key of the checkpoint to the variables that take its value.
using AssignMap = std::map<std::string, std::vector<AssignTarget>>;
// Returns a map from each variable's name, used as the key, to the variable.
AssignMap ByName(absl::Span<const std::string> variables);

struct AssignOptions {
  // If true, logs and skips variables whose keys the checkpoint lacks.
  bool ignore_missing_vars = false;
  // If true, a value may have a different shape with the same number of elements.
  bool reshape = false;
  FileSystem* fs = FileSystem::Real();
};

// Returns a function that sets variables from a checkpoint, ours or TensorFlow's, or from a weights file
// (NAME.safetensors, NAME.npz). Looks up the keys immediately. With an empty map, the function sets nothing.
//
// Errors: InvalidArgument without a checkpoint, for a missing key, or for a variable that is named twice; DataLoss for
// a damaged checkpoint. Errors returned by the function: InvalidArgument for a variable that the model lacks or that
// has a different shape or type, or for a non-finite value; NotFound for a key that has disappeared.
absl::StatusOr<InitFunction> AssignFromCheckpoint(const std::string& prefix, AssignMap variables,
                                                  const AssignOptions& options = {});

// Like AssignFromCheckpoint, but a missing key is reported only by the function (NotFound). With ignore_missing_vars,
// looks up the keys immediately, and returns nullopt and logs a warning if all are missing. Returns InvalidArgument for
// an empty map.
absl::StatusOr<absl::optional<InitFunction>> AssignFromCheckpointFn(const std::string& prefix, AssignMap variables,
                                                                    const AssignOptions& options = {});

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_ASSIGN_FROM_H_
