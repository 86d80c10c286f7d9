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

// Functions for the initial values of a model, from given values or from a checkpoint, as tf-slim's functions of the
// same names. An InitFunction is called if nothing was restored, after the variables' own initial values, and never for
// a resumed run.

struct InitialValues {
  // The values, in the model's order and in the shapes of its variables. Other variables keep their own initial values.
  std::vector<NamedTensor> values;
  // A report for display: what was loaded from where, what was not and why, and what else the checkpoint has.
  std::string report;
};
using InitFunction = std::function<absl::StatusOr<InitialValues>(const v1::ModelSpec& model)>;

// Returns a function that sets variables, by name, to values of float32. A value takes the variable's shape if it has
// as many elements. A name also denotes the only variable whose name begins with it ("w" for "weights"); the report
// says so.
// Errors of the function: InvalidArgument if no variable's name begins with a name, or several do and none is equal to
// it; for another number of elements or another type; and if two names denote one variable.
InitFunction AssignFromValues(std::map<std::string, Tensor> values);

// The variable that takes a value, or a part of it.
struct AssignTarget {
  AssignTarget(std::string variable, std::vector<int64_t> offset = {})  // NOLINT: a name is a target
      : variable(std::move(variable)), offset(std::move(offset)) {}
  AssignTarget(const char* variable) : variable(variable) {}  // NOLINT: a name is a target

  std::string variable;
  // If empty, the variable takes the whole value. Otherwise it takes the part that begins here, as a partition does.
  std::vector<int64_t> offset;
};
// Maps a key of the checkpoint to the variables that take its value.
using AssignMap = std::map<std::string, std::vector<AssignTarget>>;
// Maps the name of each variable, as the key, to the variable.
AssignMap ByName(absl::Span<const std::string> variables);

struct AssignOptions {
  // If true, variables whose keys the checkpoint lacks are logged and skipped.
  bool ignore_missing_vars = false;
  // If true, a value may have another shape with as many elements.
  bool reshape = false;
  FileSystem* fs = FileSystem::Real();
};

// Returns a function that sets variables from a checkpoint, ours or TensorFlow's, or from a file of weights
// (NAME.safetensors, NAME.npz). Looks for the keys immediately. With an empty map, the function sets nothing.
// Errors: InvalidArgument without a checkpoint, for a missing key, and for a variable that is named twice; DataLoss for
// a damaged checkpoint. Errors of the function: InvalidArgument for a variable that the model does not have, or of
// another shape or type, and for a value that is not finite; NotFound for a key that has disappeared.
absl::StatusOr<InitFunction> AssignFromCheckpoint(const std::string& prefix, AssignMap variables,
                                                  const AssignOptions& options = {});

// As AssignFromCheckpoint, but a missing key is an error of the function (NotFound). With ignore_missing_vars, looks
// for the keys immediately, and returns nullopt, with a warning in the log, if all are missing. Returns InvalidArgument
// for an empty map.
absl::StatusOr<absl::optional<InitFunction>> AssignFromCheckpointFn(const std::string& prefix, AssignMap variables,
                                                                    const AssignOptions& options = {});

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_ASSIGN_FROM_H_
