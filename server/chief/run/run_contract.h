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

// What every worker has to have in common with its run: the model, what its gradients are a function of besides, the
// framework, the data that training reads, and the canary. The first worker's become the run's and are kept in the
// run's record; all others are compared. Models are compared by a digest, since they may have many variables and
// workers many starts. Constant, thread-safe.
class RunContract {
 public:
  // The contract of a new run, from the first worker that asks for a session.
  explicit RunContract(const v1::OpenSessionRequest& first);
  // The contract of a run that is resumed.
  explicit RunContract(const v1::RunRecord& record);
  // `known`, and what it lacks from a request that it has passed.
  RunContract(const RunContract& known, const v1::OpenSessionRequest& request);

  const v1::ModelSpec& model() const { return model_; }
  // The request has something that is not known of the run: the canary, or what a record of another version did not
  // keep in the same way.
  bool Lacks(const v1::OpenSessionRequest& request) const;

  // FailedPrecondition names the worker and its host, the first difference, and the worker that the run's is from. What
  // is not known matches anything. InvalidArgument when the canary has another number of digests than the model has
  // results.
  absl::Status Check(const v1::OpenSessionRequest& request) const;

  // Sets all but the configuration and the build.
  void FillRecord(v1::RunRecord* record) const;

 private:
  absl::Status CheckModel(const v1::OpenSessionRequest& request) const;
  absl::Status CheckParts(const v1::OpenSessionRequest& request) const;
  absl::Status CheckData(const v1::OpenSessionRequest& request) const;
  absl::Status CheckCanary(const v1::OpenSessionRequest& request) const;

  const v1::ModelSpec model_;
  // SHA-256 of its serialization.
  const std::string model_digest_;
  // model_part, framework and declared_by.
  const v1::RunRecord declared_;
  const bool knows_parts_;
  const bool knows_data_;
  // Absent: training reads none.
  const absl::optional<v1::DataDigest> data_;
  // Absent before a worker has computed it.
  const absl::optional<v1::Canary> canary_;
};

// FailedPrecondition when the worker's program speaks another wire version than this one, or computes other bits.
// `host` is the chief's machine.
absl::Status CheckVersions(const v1::OpenSessionRequest& request, const std::string& host);

// What the worker says of itself.
WorkerIdentity IdentityOf(const v1::OpenSessionRequest& request);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_CONTRACT_H_
