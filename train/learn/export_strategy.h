#ifndef LOCKSTEP_TRAIN_LEARN_EXPORT_STRATEGY_H_
#define LOCKSTEP_TRAIN_LEARN_EXPORT_STRATEGY_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/train/learn/estimator.h"

namespace lockstep::train {

// An export that an Experiment writes after an evaluation, to "export/NAME" in the model_dir. A value type.
struct ExportStrategy {
  // Must not be empty or a path.
  std::string name;
  // Exports the model of result.checkpoint to `directory` or below it, and returns the export's path.
  std::function<absl::StatusOr<std::string>(Estimator& estimator, const std::string& directory,
                                            const EvaluationMetrics& result)>
      export_fn;

  // Calls export_fn. Errors: InvalidArgument for a wrong name, a missing export_fn, or a result without a checkpoint;
  // those of export_fn.
  absl::StatusOr<std::string> Export(Estimator& estimator, const EvaluationMetrics& result) const;
  absl::Status Check() const;
};

// Exports with Estimator::Export to a directory named after the global step: "export/NAME/4000".
ExportStrategy MakeExportStrategy(std::string name = "model");

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_EXPORT_STRATEGY_H_
