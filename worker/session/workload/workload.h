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

// The input and the model of a worker, made from the run's configuration.
struct Workload {
  // Null if the model finds its input by the slot's key. It then gets empty batches, and returns OutOfRange from
  // ComputeGradients, before OnLoss, where the input ends.
  std::unique_ptr<BatchSource> batches;
  std::unique_ptr<Model> model;
  // Identifies the data of the batches, which the chief compares with the run's. Absent if they are not read from
  // anywhere.
  absl::optional<v1::DataDigest> data;
  // The framework that computes, if the model does not use Lockstep's own arithmetic; all workers of a run need the
  // same.
  absl::optional<v1::Framework> framework;
};

// Returns the batch of a slot for the workload's model. Errors: those of BatchSource::Get.
inline absl::StatusOr<Batch> BatchOf(const Workload& workload, int64_t step, int64_t slot) {
  return workload.batches == nullptr ? Batch() : workload.batches->Get(step, slot);
}

using WorkloadFactory = std::function<absl::StatusOr<Workload>(const config::v1::RunSpec&)>;

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_WORKLOAD_WORKLOAD_H_
