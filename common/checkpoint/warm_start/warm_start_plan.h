#ifndef LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_PLAN_H_
#define LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/config/validation/warm_start_rules.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// What a warm start does: which variables of the model are loaded from where, and which not.
struct WarmStartPlan {
  struct Load {
    int variable = 0;  // its index in the model
    std::string key;   // in the checkpoint
    bool reshaped = false;
  };
  std::vector<Load> loads;  // in the model's order
  // A report of several lines, without a newline at its end: what is loaded from which key, what keeps its initial
  // value and why, and what of the checkpoint is not used.
  std::string report;
};

// Reads nothing but the checkpoint's index. Errors name the checkpoint, the variable and the key: NotFound for one that
// the rules require; InvalidArgument for one of another type or shape, and when nothing would be loaded.
absl::StatusOr<WarmStartPlan> PlanWarmStart(const TensorReader& checkpoint, const WarmStartRules& rules,
                                            const v1::ModelSpec& model);

// A checkpoint that a run starts from, and what it takes from it.
struct WarmStart {
  std::unique_ptr<TensorReader> checkpoint;
  WarmStartPlan plan;
};
// `config` names a checkpoint or a file of weights and is valid. Errors: those of OpenWeights and PlanWarmStart, with
// the field first.
absl::StatusOr<WarmStart> OpenWarmStart(FileSystem* fs, const config::v1::CheckpointConfig& config,
                                        const v1::ModelSpec& model);
// Reads what is to be loaded, a variable at a time. Errors: those of the reader and of CheckFinite, with the field
// first.
absl::Status CheckValues(const WarmStart& start);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_WARM_START_WARM_START_PLAN_H_
