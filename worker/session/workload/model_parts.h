#ifndef LOCKSTEP_WORKER_SESSION_WORKLOAD_MODEL_PARTS_H_
#define LOCKSTEP_WORKER_SESSION_WORKLOAD_MODEL_PARTS_H_

#include <vector>

#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/contract.pb.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// Returns digests of everything, besides the variables, their values and the data, that a worker's gradients depend on,
// for OpenSessionRequest.model_part: the model's own parts, its name and parameters if it is a registered model, the
// image decoder's version if the split "train" has images, and those parts of the configuration that concern the worker
// (how batches are built, random numbers, multipliers, clips, compression).
std::vector<v1::NamedDigest> ModelParts(const config::v1::RunSpec& config, const Model& model);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_WORKLOAD_MODEL_PARTS_H_
