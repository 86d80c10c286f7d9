#include "worker/data/open_dataset.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/data/idx.h"
#include "worker/data/normalization.h"
#include "worker/data/synthetic.h"

namespace lockstep {
namespace {

std::string Path(const DatasetOptions& options, const std::string& name) {
  return options.base_directory.empty() ? name : JoinPath(options.base_directory, name);
}

absl::StatusOr<InputConfig::Split> FindSplit(const InputConfig& config, absl::string_view name) {
  std::vector<std::string> names;
  for (const InputConfig::Split& split : config.split()) {
    if (split.name() == name) return split;
    names.push_back(absl::StrCat("\"", split.name(), "\""));
  }
  return absl::NotFoundError(
      absl::StrCat("input has no split \"", name, "\", it has ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const InputConfig& config, absl::string_view split_name,
                                                     uint64_t seed, const DatasetOptions& options) {
  ASSIGN_OR_RETURN(const InputConfig::Split split, FindSplit(config, split_name));
  ASSIGN_OR_RETURN(const Normalization normalization, Normalization::Create(config.normalization()));
  std::unique_ptr<Dataset> dataset;
  switch (split.source_case()) {
    case InputConfig::Split::kIdx:
      return OpenIdxDataset(options.fs, Path(options, split.idx().images()), Path(options, split.idx().labels()),
                            normalization);
    case InputConfig::Split::kSynthetic: {
      ASSIGN_OR_RETURN(dataset, CreateSyntheticDataset(split.synthetic(), seed));
      break;
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat("input split \"", split_name, "\" has no source"));
  }
  return NormalizeFeatures(std::move(dataset), normalization);
}

}  // namespace lockstep
