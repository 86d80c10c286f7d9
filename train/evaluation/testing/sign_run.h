#ifndef LOCKSTEP_TRAIN_EVALUATION_TESTING_SIGN_RUN_H_
#define LOCKSTEP_TRAIN_EVALUATION_TESTING_SIGN_RUN_H_

#include <cstdint>
#include <string>

#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// Sets up a test run in a logdir: a model with one weight w that predicts the sign of a number, trained for ten steps,
// and a test split /data/test.csv of four examples. If w > 0, the model classifies three of them correctly; if w < 0,
// only one.

// Returns the complete configuration, as a chief records it.
config::v1::RunSpec SignRunSpec();

// Writes the data, the logdir and its lockstep.textproto.
void RecordSignRun(FileSystem* fs, const std::string& logdir, const config::v1::RunSpec& config = SignRunSpec());

// Writes logdir/model.ckpt-<step> and makes it the newest.
void SaveSignCheckpoint(FileSystem* fs, const std::string& logdir, int64_t step, float w);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_TESTING_SIGN_RUN_H_
