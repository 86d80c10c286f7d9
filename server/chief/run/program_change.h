#ifndef LOCKSTEP_SERVER_CHIEF_RUN_PROGRAM_CHANGE_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_PROGRAM_CHANGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// Functions that decide how the program that continues a run may differ from the program that finished it. While a run
// is unfinished, its program may not change, because a successor must compute the same weights. Pure.

// Returns FailedPrecondition if the record's unfinished run belongs to a program other than `program`. Either name may
// be empty.
absl::Status CheckSameProgram(const v1::RunRecord& record, const std::string& program);

// Returns FailedPrecondition if a run without a checkpoint got its initial values from an init_fn and this program has
// none, or vice versa. Once there is a checkpoint, an init_fn is never called.
absl::Status CheckSameInitFunction(const v1::RunRecord& record, bool initializes);

// Records a difference in the program that applies from global step `step` on, unless it is already recorded.
void AddProgramChange(int64_t step, const std::string& what, v1::RunRecord* record);

// Returns true if the two models differ only in which variables are trained.
bool DifferInTrained(const v1::ModelSpec& a, const v1::ModelSpec& b);

// Stores `program` in the record. If it differs from the recorded program, also records the difference.
void ChangeProgram(int64_t step, const std::string& program, v1::RunRecord* record);

// If `model` differs from the record's model only in which variables are trained, stores it in the record, records the
// difference, and removes the declarations that the first worker with the new model must make again. Otherwise changes
// nothing.
void ChangeTrainedVariables(int64_t step, const v1::ModelSpec& model, v1::RunRecord* record);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_PROGRAM_CHANGE_H_
