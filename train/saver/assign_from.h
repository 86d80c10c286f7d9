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

// Initial values for a model from values at hand or from a checkpoint, as tf-slim's functions of the same names. They
// are called when nothing was restored, after the variables' own initial values, and never for a run that is resumed.

struct InitialValues {
  // In the model's order, each of its variable's shape. The others keep their own initial values.
  std::vector<NamedTensor> values;
  // For people: what was loaded from where, what was not and why, what of the checkpoint is not used.
  std::string report;
};
using InitFunction = std::function<absl::StatusOr<InitialValues>(const v1::ModelSpec& model)>;

// Sets variables, by name, to values of float32. A value takes the variable's shape if it has as many elements. A name
// also stands for the only variable whose name begins with it ("w" for "weights"); the report says so.
// Errors of the call: InvalidArgument when no variable's name begins with a name, when several do and none is it, for
// another number of elements or another type, and when two names stand for one variable.
InitFunction AssignFromValues(std::map<std::string, Tensor> values);

// Where a value goes.
struct AssignTarget {
  AssignTarget(std::string variable, std::vector<int64_t> offset = {})  // NOLINT: a name is a target
      : variable(std::move(variable)), offset(std::move(offset)) {}
  AssignTarget(const char* variable) : variable(variable) {}  // NOLINT: a name is a target

  std::string variable;
  // Empty: the whole value. Else the variable is a part of it that begins here, as a partition does.
  std::vector<int64_t> offset;
};
// A key of the checkpoint to the variables that take its value.
using AssignMap = std::map<std::string, std::vector<AssignTarget>>;
// Each variable from the key that is its name.
AssignMap ByName(absl::Span<const std::string> variables);

struct AssignOptions {
  // What the checkpoint lacks is logged and skipped.
  bool ignore_missing_vars = false;
  // A value may have another shape with as many elements.
  bool reshape = false;
  FileSystem* fs = FileSystem::Real();
};

// Sets variables from a checkpoint, ours or TensorFlow's, or from a file of weights (NAME.safetensors, NAME.npz), and
// looks for the keys at once. With an empty map the function sets nothing.
// Errors: InvalidArgument without a checkpoint, for a missing key, and for a variable that is named twice; DataLoss for
// a damaged checkpoint. Errors of the call: InvalidArgument for a variable that the model does not have, or of another
// shape or type, and for a value that is not finite; NotFound for a key that is gone by then.
absl::StatusOr<InitFunction> AssignFromCheckpoint(const std::string& prefix, AssignMap variables,
                                                  const AssignOptions& options = {});

// The same, but a missing key is found by the call (NotFound). With ignore_missing_vars the keys are looked for at
// once, and nullopt says, with a warning in the log, that there is none of them. InvalidArgument for an empty map.
absl::StatusOr<absl::optional<InitFunction>> AssignFromCheckpointFn(const std::string& prefix, AssignMap variables,
                                                                    const AssignOptions& options = {});

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_ASSIGN_FROM_H_
