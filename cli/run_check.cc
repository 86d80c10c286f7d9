#include "cli/run_check.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/evaluation/run_evaluator.h"
#include "cli/input_files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_state.h"
#include "common/config/compression.h"
#include "common/config/config_source.h"
#include "common/tensor/parameter_layout.h"
#include "server/optimizer/optimizer.h"
#include "server/ps/checkpoint_keys.h"
#include "worker/data/addressable_batches.h"
#include "worker/data/open_dataset.h"
#include "worker/nn/graph_model.h"
#include "worker/session/gradient_transforms.h"
#include "worker/train/metrics.h"

namespace lockstep {
namespace {

// What only training asks for.
absl::Status CheckTraining(const RunConfig& config, std::shared_ptr<const Dataset> dataset) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, CreateModel(config.model(), dataset->spec()));
  RETURN_IF_ERROR(GradientTransforms::Create(config.optimizer(), model->spec(), nullptr).status());
  ASSIGN_OR_RETURN(const ParameterLayout layout, ParameterLayout::Create(model->spec()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Optimizer> optimizer, Optimizer::Create(config.optimizer()));
  const bool estimates = CompressionOf(config.compression()).top_k > 0;
  const absl::Status keys =
      CheckCheckpointKeys(layout, *optimizer, estimates ? config.training().replicas_to_aggregate() : 0);
  if (!keys.ok()) return InField("model", keys);
  BatchSourceOptions options;
  options.replicas_to_aggregate = config.training().replicas_to_aggregate();
  options.seed = config.training().seed();
  return CreateBatchSource(std::move(dataset), config.input(), options).status();
}

}  // namespace

absl::StatusOr<RunCheck> CheckRun(FileSystem* fs, const RunConfig& config, const std::string& index_directory) {
  RETURN_IF_ERROR(CheckInputFiles(fs, config));
  const std::string& warm_start = config.checkpoint().warm_start();
  if (!warm_start.empty()) {
    const absl::StatusOr<bool> exists = CheckpointExists(fs, warm_start);
    if (!exists.ok()) return InField("checkpoint.warm_start", exists.status());
    if (!*exists) {
      return absl::NotFoundError(absl::StrCat("checkpoint.warm_start: there is no checkpoint ", warm_start));
    }
  }
  DatasetOptions options;
  options.fs = fs;
  options.index_directory = index_directory;
  RunCheck check;
  for (int i = 0; i < config.input().split_size(); ++i) {
    const std::string& name = config.input().split(i).name();
    auto opened = OpenDataset(config.input(), name, config.training().seed(), options);
    if (!opened.ok()) return InField(absl::StrCat("input.split[", i, "]"), opened.status());
    const std::shared_ptr<const Dataset> dataset = *std::move(opened);
    // Every split has to fit the model.
    ASSIGN_OR_RETURN(ModelSummary model, SummarizeModel(config.model(), dataset->spec()));
    if (name == "train") {
      RETURN_IF_ERROR(CheckTraining(config, dataset));
      check.model = std::move(model);
    }
    if (name == EvaluationSplit(config)) {
      const std::vector<std::string> metrics(config.evaluation().metric().begin(), config.evaluation().metric().end());
      RETURN_IF_ERROR(CreateMetrics(metrics, config.model(), dataset->spec()).status());
    }
    check.splits.push_back({name, dataset->digest(), dataset->spec()});
  }
  return check;
}

}  // namespace lockstep
