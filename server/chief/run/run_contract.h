#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_CONTRACT_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_CONTRACT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/sync/workers/worker_identity.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/contract.pb.h"
#include "lockstep/v1/data.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {

// Everything that all workers of a run must have in common: the model, the other inputs of its gradients, the
// framework, the training data, and the canary. The first worker declares these for the run, the run's record keeps
// them, and other workers are compared with them. Models are compared by digest, because they may have many variables
// and workers may start often. Immutable, thread-safe.
class RunContract {
 public:
  // Creates the contract of a new run from the request of the first worker that opens a session.
  explicit RunContract(const v1::OpenSessionRequest& first);
  // Creates the contract of a resumed run from its record.
  explicit RunContract(const v1::RunRecord& record);
  // Copies `known` and adds what it lacks from `request`, which has been accepted.
  RunContract(const RunContract& known, const v1::OpenSessionRequest& request);
  // Copies `known`, except for the declarations that a program with different functions makes again: only the canary,
  // or also the model parts and the framework.
  enum class Forgets { kCanary, kPartsAndCanary };
  RunContract(const RunContract& known, Forgets forgets);

  const v1::ModelSpec& model() const { return model_; }
  // Returns true if a worker has declared something that depends on the settings it computes with.
  bool has_declarations() const { return knows_parts_ || canary_.has_value(); }
  // Returns true if the request declares something that is not yet known about the run: the canary, or something that a
  // record written by a different version stored in another form.
  bool Lacks(const v1::OpenSessionRequest& request) const;

  // Compares the request with the contract. Returns FailedPrecondition if they differ, naming the worker and its host,
  // the first difference, and the worker that declared the run's value. Values that are not known match anything.
  // Returns InvalidArgument if the number of canary digests differs from the number of the model's results.
  absl::Status Check(const v1::OpenSessionRequest& request) const;

  // Sets the fields that hold the workers' declarations.
  void FillRecord(v1::RunRecord* record) const;

 private:
  absl::Status CheckModel(const v1::OpenSessionRequest& request) const;
  absl::Status CheckParts(const v1::OpenSessionRequest& request) const;
  absl::Status CheckData(const v1::OpenSessionRequest& request) const;
  absl::Status CheckCanary(const v1::OpenSessionRequest& request) const;

  const v1::ModelSpec model_;
  // SHA-256 of the serialized model.
  const std::string model_digest_;
  // Only model_part, framework and declared_by are set.
  const v1::RunRecord declared_;
  const bool knows_parts_;
  const bool knows_data_;
  // Absent if training reads no data.
  const absl::optional<v1::DataDigest> data_;
  // Absent until a worker has computed it.
  const absl::optional<v1::Canary> canary_;
};

// Returns FailedPrecondition if the worker's program has a different wire version, or would compute different bits
// because its arithmetic version or, without a framework, its layers version differs. `host` is the chief's machine.
absl::Status CheckVersions(const v1::OpenSessionRequest& request, const std::string& host);

// Returns FailedPrecondition if `optimizer` requires workers to transform each slot's gradients, but the worker does
// not declare that it does so.
absl::Status CheckTransforms(const v1::OpenSessionRequest& request, const config::v1::OptimizerConfig& optimizer);

// Returns the worker's description of itself.
WorkerIdentity IdentityOf(const v1::OpenSessionRequest& request);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_CONTRACT_H_
