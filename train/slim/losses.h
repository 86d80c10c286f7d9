#ifndef LOCKSTEP_TRAIN_SLIM_LOSSES_H_
#define LOCKSTEP_TRAIN_SLIM_LOSSES_H_

#include <string>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep::train::slim::losses {

struct LogLossOptions {
  // Factor by which the loss is multiplied. Weights of individual examples come from a column of the input.
  float weights = 1;
  // Added to each probability before taking its logarithm. 0 or more.
  float epsilon = 1e-7f;
  // The layer whose outputs are the predictions, which are probabilities in [0, 1]. If empty, the last layer.
  std::string predictions;
};

// Adds tf.losses.log_loss to the model's losses: the mean over outputs p and labels t of
//   -t log(p + epsilon) - (1 - t) log(1 - p + epsilon).
// The input provides the labels. CreateTrainOp reports anything that does not fit.
void LogLoss(config::v1::RunSpec* model, const LogLossOptions& options = {});

// Returns the total_loss for CreateTrainOp: the sum of all losses of the model and, if `add_regularization_losses`, of
// its regularizers. Returns InvalidArgument if the model has no loss.
absl::StatusOr<config::v1::RunSpec> GetTotalLoss(config::v1::RunSpec model, bool add_regularization_losses = true);

}  // namespace lockstep::train::slim::losses

#endif  // LOCKSTEP_TRAIN_SLIM_LOSSES_H_
