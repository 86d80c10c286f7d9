#ifndef LOCKSTEP_TRAIN_REPLAY_RECORDED_SETTINGS_H_
#define LOCKSTEP_TRAIN_REPLAY_RECORDED_SETTINGS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {

// These functions return an earlier configuration of a run, reconstructed from the changes in its record. Errors:
// FailedPrecondition if the record has merged the changes from that time (AddChange).

// Returns the configuration used for the update from global step `step` to the next one.
absl::StatusOr<config::v1::RunSpec> ConfigAtStep(const v1::RunRecord& record, int64_t step);
// Returns the configuration after the first `changes` changes.
absl::StatusOr<config::v1::RunSpec> ConfigAfterChanges(const v1::RunRecord& record, int64_t changes);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_REPLAY_RECORDED_SETTINGS_H_
