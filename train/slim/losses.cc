#include "lockstep/train/slim/losses.h"

#include "absl/status/status.h"

namespace lockstep::train::slim::losses {

void LogLoss(config::v1::RunSpec* model, const LogLossOptions& options) {
  config::v1::Loss* const loss = model->mutable_model()->add_loss();
  loss->mutable_log_loss()->set_epsilon(options.epsilon);
  loss->set_weight(options.weights);
  loss->set_input(options.predictions);
}

absl::StatusOr<config::v1::RunSpec> GetTotalLoss(config::v1::RunSpec model, bool add_regularization_losses) {
  if (model.model().loss_size() == 0) {
    return absl::InvalidArgumentError("total_loss: the model has no loss; add one, such as losses::LogLoss");
  }
  if (!add_regularization_losses) model.mutable_model()->clear_regularizer();
  return model;
}

}  // namespace lockstep::train::slim::losses
