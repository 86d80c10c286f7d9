#include "lockstep/train/learn/export_strategy.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep::train {

absl::Status ExportStrategy::Check() const {
  if (name.empty() || name == "." || name == ".." || absl::StrContains(name, '/')) {
    return absl::InvalidArgumentError(
        absl::StrCat("an export strategy's name is \"", name, "\", must be the name of a directory"));
  }
  if (!export_fn) return absl::InvalidArgumentError(absl::StrCat("export strategy ", name, " has no export_fn"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ExportStrategy::Export(Estimator& estimator, const EvaluationMetrics& result) const {
  RETURN_IF_ERROR(Check());
  if (result.checkpoint.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("export strategy ", name, " got a result without a checkpoint"));
  }
  return export_fn(estimator, JoinPath(estimator.config().model_dir(), absl::StrCat("export/", name)), result);
}

ExportStrategy MakeExportStrategy(std::string name) {
  ExportStrategy strategy;
  strategy.name = std::move(name);
  strategy.export_fn = [](Estimator& estimator, const std::string& directory,
                          const EvaluationMetrics& result) -> absl::StatusOr<std::string> {
    std::string exported = JoinPath(directory, absl::StrCat(result.global_step));
    RETURN_IF_ERROR(estimator.Export(exported, result));
    return exported;
  };
  return strategy;
}

}  // namespace lockstep::train
