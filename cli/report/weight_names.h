#ifndef LOCKSTEP_CLI_REPORT_WEIGHT_NAMES_H_
#define LOCKSTEP_CLI_REPORT_WEIGHT_NAMES_H_

#include <string>
#include <vector>

#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// Returns the sorted names of a checkpoint's tensors that are model variables. Omits tensors that are needed only to
// resume a run (optimizer state, its scalars, the global step). If `model` is given and the checkpoint has all of the
// model's variables, returns their names. Otherwise returns the names of all numeric tensors except global_step, the
// scalars of TensorFlow's optimizers, and NAME/SLOT if there is a NAME of the same shape.
std::vector<std::string> WeightNames(const TensorReader& checkpoint, const v1::ModelSpec* model);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_WEIGHT_NAMES_H_
