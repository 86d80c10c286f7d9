#ifndef LOCKSTEP_SERVER_CHIEF_RUN_PROGRAM_CHANGE_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_PROGRAM_CHANGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lockstep/v1/run_record.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// Decides how the program that continues a run may differ from the program that ended it well. While a run is
// unfinished, they may not differ, because a successor must compute the same weights. Pure.

// FailedPrecondition if the unfinished run of the record belongs to another program. Both may be empty.
absl::Status CheckSameProgram(const v1::RunRecord& record, const std::string& program);

// FailedPrecondition if a run without a checkpoint got its initial values from an init_fn and this program has none, or
// the other way round. Once there is a checkpoint, an init_fn is never called.
absl::Status CheckSameInitFunction(const v1::RunRecord& record, bool initializes);

// Records a difference that holds from global step `step` on, once.
void AddProgramChange(int64_t step, const std::string& what, v1::RunRecord* record);

// Returns true if the two differ in which variables are trained, and in nothing else.
bool DifferInTrained(const v1::ModelSpec& a, const v1::ModelSpec& b);

// Makes `program` the record's, and records the difference.
void ChangeProgram(int64_t step, const std::string& program, v1::RunRecord* record);

// If `model` is the record's but for which variables are trained, makes it the record's, records the difference, and
// takes out what the first worker with it declares again. Otherwise changes nothing.
void ChangeTrainedVariables(int64_t step, const v1::ModelSpec& model, v1::RunRecord* record);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_PROGRAM_CHANGE_H_
