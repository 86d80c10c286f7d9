#include "lockstep/train/session/init/default_policy.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep::train {
namespace {

using ::lockstep::config::v1::TrainingConfig;

bool Chooses(const TrainingConfig& training) {
  return training.policy_case() != TrainingConfig::POLICY_NOT_SET || training.replicas_to_aggregate() > 1;
}

}  // namespace

absl::Status ApplyDefaultPolicy(SessionOptions* session) {
  if (!session->is_chief || Chooses(session->op.spec.training())) return absl::OkStatus();
  if (!session->logdir.empty()) {
    ASSIGN_OR_RETURN(const absl::optional<v1::RunRecord> record, ReadRunRecord(session->fs, session->logdir, {}));
    if (record && record->has_config() && !ReadsStreams(record->config().training())) {
      LOG(INFO) << "the run in " << session->logdir << " is DETERMINISTIC, and continues so; a new one would be ASYNC";
      return absl::OkStatus();
    }
  }
  config::v1::RunSpec spec = session->op.spec;
  spec.mutable_training()->mutable_async();
  const absl::StatusOr<TrainOp> op = session->op.WithSpec(spec);
  // Errors that do not depend on the policy are left for the caller to report.
  if (op.ok() || !session->op.WithSpec(session->op.spec).ok()) {
    session->op.spec = op.ok() ? op->spec : std::move(spec);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("training.policy: nothing chooses one, so the run is asynchronous, as the original's is without a "
                   "sync_optimizer, and that is not possible: ",
                   op.status().message(), "; give a sync_optimizer, or training { deterministic {} }"));
}

}  // namespace lockstep::train
