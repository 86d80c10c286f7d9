#include "lockstep/train/session/run_bound.h"

#include <string>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/server/chief/run/run_target.h"
#include "lockstep/train/saver/checkpoints.h"

namespace lockstep::train {

absl::StatusOr<absl::optional<int64_t>> RunBound(const SessionOptions& chief) {
  ASSIGN_OR_RETURN(const absl::optional<v1::RunRecord> record, ReadRunRecord(chief.fs, chief.logdir));
  ASSIGN_OR_RETURN(const auto latest, LatestCheckpoint(chief.logdir, "checkpoint", chief.fs));
  const int64_t step = latest ? StepOfCheckpoint(*latest).value_or(0) : 0;
  const RunTarget target = RunTarget::Resolve(chief.op.spec.training(), record ? &*record : nullptr, step);
  if (target.total_steps() == RunTarget::kUnbounded) return absl::optional<int64_t>();
  return absl::optional<int64_t>(target.total_steps());
}

}  // namespace lockstep::train
