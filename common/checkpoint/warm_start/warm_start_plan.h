#ifndef LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_PLAN_H_
#define LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/config/validation/warm_start_rules.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// The plan of a warm start: which variables of the model are loaded, and from where.
struct WarmStartPlan {
  struct Load {
    int variable = 0;  // its index in the model
    std::string key;   // in the checkpoint
    bool reshaped = false;
    // If not empty, Permute rearranges the tensor, which has the shape `stored`.
    std::vector<int> permutation;
    Shape stored;
  };
  std::vector<Load> loads;  // in the model's order
  // A report of several lines without a final newline. It says which variables are loaded from which key, which ones
  // keep their initial value and why, and what remains unused in the checkpoint.
  std::string report;
};

// Plans a warm start. Reads only the checkpoint's index. Errors name the checkpoint, the variable and the key: NotFound
// if a required variable is missing; InvalidArgument if a type or shape differs, if a weight with a PyTorch name fits
// in two orders of its dimensions and no rule specifies the order, or if nothing would be loaded.
absl::StatusOr<WarmStartPlan> PlanWarmStart(const TensorReader& checkpoint, const WarmStartRules& rules,
                                            const v1::ModelSpec& model);

// A checkpoint that a run starts from, and the plan for it.
struct WarmStart {
  std::unique_ptr<TensorReader> checkpoint;
  WarmStartPlan plan;
};
// Opens the checkpoint or file of weights that `config` names, and plans the warm start. `config` must be valid.
// Errors: those of OpenWeights and PlanWarmStart, prefixed with the field.
absl::StatusOr<WarmStart> OpenWarmStart(FileSystem* fs, const config::v1::CheckpointConfig& config,
                                        const v1::ModelSpec& model);
// Reads the float32 variable that `load` describes into `out`. Returns the reader's errors.
absl::Status ReadLoad(const TensorReader& checkpoint, const WarmStartPlan::Load& load, absl::Span<float> out);
// Checks, one variable at a time, that all values to load can be read and are finite. Errors: those of the reader and
// of CheckFinite, prefixed with the field.
absl::Status CheckValues(const WarmStart& start);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_PLAN_H_
