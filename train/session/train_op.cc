#include "lockstep/train/session/train_op.h"

#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/config/validation/validation.h"

namespace lockstep::train {

absl::StatusOr<TrainOp> TrainOp::WithSpec(config::v1::RunSpec other) const {
  TrainOp op = *this;
  op.spec = std::move(other);
  ApplyDefaults(&op.spec);
  RETURN_IF_ERROR(ValidateRunSpec(op.spec));
  return op;
}

absl::StatusOr<TrainOp> CreateTrainOp(config::v1::RunSpec spec, WorkloadFactory make_workload) {
  TrainOp op;
  op.make_workload = std::move(make_workload);
  return op.WithSpec(std::move(spec));
}

absl::StatusOr<TrainOp> CreateTrainOp(const std::string& text) {
  config::v1::RunSpec spec;
  RETURN_IF_ERROR(ParseTextProto(text, "the configuration", &spec));
  return CreateTrainOp(std::move(spec));
}

}  // namespace lockstep::train
