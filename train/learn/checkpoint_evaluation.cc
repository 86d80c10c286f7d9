#include "lockstep/train/learn/checkpoint_evaluation.h"

#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {

absl::Status CheckpointEvaluationHook::AfterRun(RunContext& /*context*/, const RunValues& values) {
  if (values.result.global_step % options_.every_n_steps != 0) return absl::OkStatus();
  const absl::Time now = options_.clock->Now();
  if (now < next_look_) return absl::OkStatus();
  next_look_ = now + options_.check_interval;
  ASSIGN_OR_RETURN(const absl::optional<std::string> latest, options_.latest_checkpoint());
  if (!latest || *latest == evaluated_) return absl::OkStatus();
  evaluated_ = *latest;
  const absl::Status status = options_.evaluate(*latest);
  if (absl::IsNotFound(status)) {
    ASSIGN_OR_RETURN(const absl::optional<std::string> newest, options_.latest_checkpoint());
    if (newest == latest) return status;  // something else is missing
  } else if (!absl::IsDataLoss(status)) {
    return status;
  }
  LOG(ERROR) << "not evaluated: " << status.message();
  return absl::OkStatus();
}

absl::StatusOr<bool> CheckpointEvaluationListener::AfterSave(Session& /*session*/, int64_t /*step*/,
                                                             const std::string& prefix) {
  RETURN_IF_ERROR(evaluate_(prefix));
  return false;
}

}  // namespace lockstep::train
