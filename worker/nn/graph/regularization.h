#ifndef LOCKSTEP_WORKER_NN_GRAPH_REGULARIZATION_H_
#define LOCKSTEP_WORKER_NN_GRAPH_REGULARIZATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/nn/compute/compute_context.h"
#include "lockstep/worker/nn/compute/workspace.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// A model's regularizers. Their value is l1 sum|w| + l2 sum(w^2) / 2, summed over the regularizers and the trainable
// variables w that each one matches. Constant after Create except for scratch memory, and therefore not thread-safe.
class Regularization {
 public:
  // Returns InvalidArgument for an expression that is malformed or matches no trainable variable, and for factors that
  // are negative or not finite.
  static absl::StatusOr<Regularization> Create(const config::v1::ModelConfig& config, const v1::ModelSpec& spec);

  double Loss(ComputeContext* compute, VariableValues values);

  // gradient += l1 sign(w) + l2 w for trainable variable `variable`.
  void AddGradient(ComputeContext* compute, int variable, const float* value, float* gradient) const;

 private:
  // The factors of one variable, summed over all regularizers that match it.
  struct Factors {
    float l1 = 0;
    float l2 = 0;
    int64_t elements = 0;
  };

  // In the order of ModelSpec.variables.
  std::vector<Factors> factors_;
  Workspace<double> block_sums_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_GRAPH_REGULARIZATION_H_
