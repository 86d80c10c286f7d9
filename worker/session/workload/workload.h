#ifndef LOCKSTEP_WORKER_SESSION_WORKLOAD_WORKLOAD_H_
#define LOCKSTEP_WORKER_SESSION_WORKLOAD_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/contract.pb.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

// A worker's input and model, made from the run's configuration.
struct Workload {
  // Null if the model finds its input by the slot's key. In this case, the model gets empty batches, and when its input
  // ends, ComputeGradients must return OutOfRange before calling OnLoss.
  std::unique_ptr<BatchSource> batches;
  std::unique_ptr<Model> model;
  // Identifies the batches' data, so that the chief can compare it with the run's data. Absent if the batches are not
  // read from any data.
  absl::optional<v1::DataDigest> data;
  // The framework that computes, if the model does not use Lockstep's own arithmetic. All workers of a run must use the
  // same one.
  absl::optional<v1::Framework> framework;
};

// Returns a slot's batch for the workload's model. Returns errors from BatchSource::Get.
inline absl::StatusOr<Batch> BatchOf(const Workload& workload, int64_t step, int64_t slot) {
  return workload.batches == nullptr ? Batch() : workload.batches->Get(step, slot);
}

using WorkloadFactory = std::function<absl::StatusOr<Workload>(const config::v1::RunSpec&)>;

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_WORKLOAD_WORKLOAD_H_
