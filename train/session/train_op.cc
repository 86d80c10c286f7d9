#include "lockstep/train/session/train_op.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/first_difference.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/config/validation/validation.h"

namespace lockstep::train {
namespace {

bool HasModel(const TrainOp& op) { return op.spec.has_model() || op.make_workload; }

config::v1::RunSpec ModelWithDefaults(const TrainOp& op) {
  config::v1::RunSpec spec;
  *spec.mutable_model() = op.spec.model();
  ApplyDefaults(&spec);
  return spec;
}

}  // namespace

absl::StatusOr<TrainOp> TrainOp::WithSpec(config::v1::RunSpec other) const {
  TrainOp op = *this;
  op.spec = std::move(other);
  const config::v1::TrainingConfig given = op.spec.training();
  ApplyDefaults(&op.spec);
  RETURN_IF_ERROR(ValidateRunSpec(op.spec));
  if (given.has_first_arrivals()) *op.spec.mutable_training()->mutable_first_arrivals() = given.first_arrivals();
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

absl::Status CheckSameOp(const TrainOp& opened, const TrainOp& op) {
  if (!HasModel(op) || !HasModel(opened)) return absl::OkStatus();
  std::string difference;
  if (!op.make_workload != !opened.make_workload) {
    difference = "only one of the two has a make_workload";
  } else if (!op.transform_model != !opened.transform_model) {
    difference = "only one of the two has a transform_model";
  } else {
    difference = FirstDifference(ModelWithDefaults(opened), ModelWithDefaults(op));
  }
  if (difference.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("train_op: is not the one with which the session was opened: ", difference));
}

absl::Status CheckSameOp(const TrainOp& opened, const TrainOp& op, const TrainOp** last) {
  if (&op == *last) return absl::OkStatus();
  RETURN_IF_ERROR(CheckSameOp(opened, op));
  *last = &op;
  return absl::OkStatus();
}

}  // namespace lockstep::train
