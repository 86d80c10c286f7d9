#ifndef LOCKSTEP_TRAIN_LEARN_MODEL_EXPORT_H_
#define LOCKSTEP_TRAIN_LEARN_MODEL_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/learn/estimator.h"
#include "lockstep/train/session/end/stop_signal.h"

namespace lockstep::train {

// Exports a run's model for use without the rest of the run:
//   model.ckpt-<step>.*    the model's variables and global_step, without the optimizer's state, as a checkpoint from
//                          which a new run may start (checkpoint.warm_start) but no run resumes; "checkpoint" names it
//   model.safetensors,
//   model.npz              the same variables for other programs
//   evaluation.json        the metrics
//   lockstep.textproto     the run's configuration and model; written last: a directory without it is not an export
// `lockstep predict --export=DIRECTORY` and `eval` read the export. Repeating an export leaves the files unchanged.
// Only one process at a time exports to the subdirectories of a directory, which contains the lock "export.lock";
// others wait for the lock.
//
// Errors: NotFound if model_dir has no run or lacks the checkpoint; Cancelled if the process is asked to stop while it
// waits; those of the files.
absl::Status ExportModel(FileSystem* fs, const std::string& model_dir, const EvaluationMetrics& result,
                         const std::string& directory, Clock* clock = Clock::Real(), StopSignal* stop = nullptr);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_MODEL_EXPORT_H_
