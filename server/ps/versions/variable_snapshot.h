#ifndef LOCKSTEP_SERVER_PS_VERSIONS_VARIABLE_SNAPSHOT_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_VARIABLE_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/server/optimizer/optimizer.h"

namespace lockstep {

// The gradient estimates of top-k compression: one flat array for each slot of a step.
using GradientEstimates = std::vector<std::shared_ptr<const AlignedBuffer>>;

// A value to set outside of an update, with its key in a checkpoint. The key names a variable, its optimizer state, or
// the state of an update op.
struct AssignedValue {
  std::string key;
  Tensor value;
};

// A consistent state of all variables, for writing in the background. Owns its memory.
struct VariableSnapshot {
  int64_t step = 0;
  std::shared_ptr<const ParameterLayout> layout;
  // The names of each variable's states. State k of any variable is in optimizer_state[k], in the layout of the values.
  std::shared_ptr<const std::vector<std::vector<std::string>>> state_names;
  std::vector<OptimizerScalar> scalars;
  // The values of all variables except the constant ones, with the state of update ops, and the constant variables
  // (ConstantValues).
  std::shared_ptr<const AlignedBuffer> values;
  std::shared_ptr<const AlignedBuffer> constants;
  std::vector<std::shared_ptr<const AlignedBuffer>> optimizer_state;
  std::shared_ptr<const GradientEstimates> estimates;
  // A serialized v1::SessionState; empty if no program keeps state.
  std::string session_state;
  // The next position of each input stream; empty if batches belong to slots.
  std::vector<int64_t> stream_positions;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_VARIABLE_SNAPSHOT_H_
