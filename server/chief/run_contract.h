#ifndef LOCKSTEP_SERVER_CHIEF_RUN_CONTRACT_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_CONTRACT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "proto/chief.pb.h"
#include "proto/config.pb.h"

namespace lockstep {

// What every worker has to have in common with its run: the model, and the data that training reads. The first
// worker's become the run's and are kept in the run's record; all others are compared. Models are compared by a digest,
// since they may have many variables and workers many starts. Constant, thread-safe.
class RunContract {
 public:
  // Of a new run whose first worker asks for a session.
  explicit RunContract(const OpenSessionRequest& first);
  // Of a run that goes on.
  explicit RunContract(const RunRecord& record);

  const ModelSpec& model() const { return model_; }
  // False when the record is of a version that did not keep the data's digest.
  bool knows_data() const { return knows_data_; }

  // FailedPrecondition names the worker and the first difference between its model and the run's, or its data and the
  // run's. Data that are not known match any.
  absl::Status Check(const OpenSessionRequest& request) const;

  // Sets model and data.
  void FillRecord(RunRecord* record) const;

 private:
  const ModelSpec model_;
  // SHA-256 of its serialization.
  const std::string model_digest_;
  const bool knows_data_;
  // Absent: training reads none.
  const absl::optional<DataDigest> data_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_CONTRACT_H_
