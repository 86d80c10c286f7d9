#ifndef LOCKSTEP_TRAIN_LEARN_EXPORT_STRATEGY_H_
#define LOCKSTEP_TRAIN_LEARN_EXPORT_STRATEGY_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/train/learn/estimator.h"

namespace lockstep::train {

// What an Experiment exports after an evaluation, to "export/NAME" in the model_dir. A value.
struct ExportStrategy {
  // Not empty, and no path.
  std::string name;
  // Exports the model of result.checkpoint to `directory` or below it; returns where it is.
  std::function<absl::StatusOr<std::string>(Estimator& estimator, const std::string& directory,
                                            const EvaluationMetrics& result)>
      export_fn;

  // InvalidArgument for a wrong name, without export_fn, and for a result without a checkpoint; else the error of
  // export_fn.
  absl::StatusOr<std::string> Export(Estimator& estimator, const EvaluationMetrics& result) const;
  absl::Status Check() const;
};

// Exports with Estimator::Export to a directory with the number of the global step: "export/NAME/4000".
ExportStrategy MakeExportStrategy(std::string name = "model");

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_EXPORT_STRATEGY_H_
