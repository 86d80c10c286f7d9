#ifndef LOCKSTEP_CLI_REPORT_WEIGHT_NAMES_H_
#define LOCKSTEP_CLI_REPORT_WEIGHT_NAMES_H_

#include <string>
#include <vector>

#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// Which tensors of a checkpoint are a model's variables, and not what only a resumed run needs (optimizer state, its
// scalars, the global step). Sorted. `model`, when it is not null, says so; without one, or when it is another
// checkpoint's, everything is a variable but global_step, the scalars of TensorFlow's optimizers, what is not numbers,
// and NAME/SLOT where there is a NAME of the same shape.
std::vector<std::string> WeightNames(const TensorReader& checkpoint, const v1::ModelSpec* model);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_WEIGHT_NAMES_H_
