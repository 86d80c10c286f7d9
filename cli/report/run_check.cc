#include "lockstep/cli/report/run_check.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/cli/report/input_files.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/warm_start/warm_start_plan.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/optimizer/optimizer.h"
#include "lockstep/server/ps/versions/checkpoint_keys.h"
#include "lockstep/train/evaluation/run_evaluator.h"
#include "lockstep/worker/data/addressable_batches.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/evaluation/metrics.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/session/block/gradient_transforms.h"

namespace lockstep {
namespace {

// Checks the requirements of training that evaluation does not have.
absl::Status CheckTraining(FileSystem* fs, const config::v1::RunSpec& config, std::shared_ptr<const Dataset> dataset,
                           RunCheck* check) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, CreateModel(config.model(), dataset->spec()));
  RETURN_IF_ERROR(GradientTransforms::Create(config.optimizer(), model->spec(), nullptr).status());
  ASSIGN_OR_RETURN(const ParameterLayout layout, ParameterLayout::Create(model->spec()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Optimizer> optimizer, Optimizer::Create(config.optimizer()));
  const bool estimates = CompressionOf(config.compression()).top_k > 0;
  const absl::Status keys =
      CheckCheckpointKeys(layout, *optimizer, estimates ? config.training().replicas_to_aggregate() : 0);
  if (!keys.ok()) return InField("model", keys);
  if (!config.checkpoint().warm_start().empty()) {
    ASSIGN_OR_RETURN(WarmStart start, OpenWarmStart(fs, config.checkpoint(), model->spec()));
    RETURN_IF_ERROR(CheckValues(start));
    check->warm_start = std::move(start.plan.report);
  }
  BatchSourceOptions options;
  options.replicas_to_aggregate = config.training().replicas_to_aggregate();
  options.seed = config.training().seed();
  return CreateBatchSource(std::move(dataset), config.input(), options).status();
}

}  // namespace

absl::StatusOr<RunCheck> CheckRun(FileSystem* fs, const config::v1::RunSpec& config,
                                  const std::string& index_directory) {
  RETURN_IF_ERROR(CheckInputFiles(fs, config));
  const std::string& warm_start = config.checkpoint().warm_start();
  if (!warm_start.empty()) {
    const absl::StatusOr<bool> exists = TensorsExist(fs, warm_start);
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
    // Every split must fit the model.
    ASSIGN_OR_RETURN(ModelSummary model, SummarizeModel(config.model(), dataset->spec()));
    if (name == "train") {
      RETURN_IF_ERROR(CheckTraining(fs, config, dataset, &check));
      check.model = std::move(model);
    }
    if (name == EvaluationSplit(config)) {
      const std::vector<std::string> metrics(config.evaluation().metric().begin(), config.evaluation().metric().end());
      RETURN_IF_ERROR(CreateMetrics(metrics, config.model(), dataset->spec()).status());
    }
    check.splits.push_back({name, config.input().split(i).registered().name(), dataset->digest(), dataset->spec()});
  }
  return check;
}

}  // namespace lockstep
