#include "lockstep/cli/report/run_check.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/cli/report/input_files.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/warm_start/warm_start_plan.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/step/compression.h"
#include "lockstep/common/step/training_policy.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/optimizer/optimizer_groups.h"
#include "lockstep/server/ps/versions/checkpoint_keys.h"
#include "lockstep/train/evaluation/run_evaluator.h"
#include "lockstep/worker/data/addressable_batches.h"
#include "lockstep/worker/data/example_order.h"
#include "lockstep/worker/data/formats/open_dataset.h"
#include "lockstep/worker/evaluation/metrics.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/session/block/gradient_transforms.h"

namespace lockstep {
namespace {

// Returns an error if the input ends before the first step.
absl::Status CheckLength(const config::v1::RunSpec& config, int64_t examples, const RunCheck& check) {
  if (check.input_steps.value_or(1) > 0 && check.stream_batches.value_or(1) > 0) return absl::OkStatus();
  const int64_t replicas = BatchesTogether(config.training()), batch = config.input().batch_size();
  return absl::InvalidArgumentError(
      absl::StrCat("input.epochs is ", config.input().epochs(), ": ", CountText(config.input().epochs(), "epoch"),
                   " of ", CountText(examples, "example"), " end before the first step, which needs ", replicas * batch,
                   " (", CountText(replicas, "slot"), " of ", batch, "); take a smaller batch_size, or more epochs"));
}

// Adds to the error the names of the split and of the file whose examples do not fit the model.
absl::Status WithExamples(const config::v1::InputConfig& input, int split, const absl::Status& status) {
  const std::vector<std::string> files =
      split < input.split_size() ? InputFilesOf(input.split(split)) : std::vector<std::string>();
  return absl::Status(status.code(), absl::StrCat(status.message(), " (examples of split \"", SplitNames(input)[split],
                                                  "\"", files.empty() ? "" : absl::StrCat(", ", files.front()), ")"));
}

// Checks the requirements of training that evaluation does not have.
absl::Status CheckTraining(FileSystem* fs, const config::v1::RunSpec& config,
                           const std::shared_ptr<const Dataset>& dataset, RunCheck* check) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, CreateModel(config.model(), dataset->spec()));
  RETURN_IF_ERROR(GradientTransforms::Create(config.optimizer(), model->spec(), nullptr).status());
  ASSIGN_OR_RETURN(const ParameterLayout layout, ParameterLayout::Create(model->spec()));
  ASSIGN_OR_RETURN(const std::unique_ptr<OptimizerGroups> optimizers,
                   OptimizerGroups::Create(config.optimizer(), layout));
  const bool estimates = CompressionOf(config.compression()).top_k > 0;
  const absl::Status keys =
      CheckCheckpointKeys(layout, *optimizers, estimates ? config.training().replicas_to_aggregate() : 0);
  if (!keys.ok()) return InField("model", keys);
  if (!config.checkpoint().warm_start().empty()) {
    ASSIGN_OR_RETURN(WarmStart start, OpenWarmStart(fs, config.checkpoint(), model->spec()));
    RETURN_IF_ERROR(CheckValues(start));
    check->warm_start = std::move(start.plan.report);
  }
  RETURN_IF_ERROR(CreateBatchSource(dataset, config.input(), TrainingBatches(config)).status());
  check->input_steps = StepsOfInput(config, dataset->size());
  check->stream_batches = BatchesOfStream(config, dataset->size());
  return CheckLength(config, dataset->size(), *check);
}

}  // namespace

absl::StatusOr<RunCheck> CheckRun(FileSystem* fs, const config::v1::RunSpec& config,
                                  const std::string& index_directory) {
  RETURN_IF_ERROR(CheckInputFiles(fs, config));
  const std::string& warm_start = config.checkpoint().warm_start();
  if (!warm_start.empty()) {
    const absl::StatusOr<bool> exists = TensorsExist(fs, warm_start);
    if (!exists.ok()) return InField("checkpoint.warm_start", exists.status());
    if (!*exists) return InField("checkpoint.warm_start", NoSuchCheckpoint(fs, warm_start, /*logdir=*/""));
  }
  DatasetOptions options;
  options.fs = fs;
  options.index_directory = index_directory;
  RunCheck check;
  const std::vector<std::string> names = SplitNames(config.input());
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    const std::string& name = names[i];
    const bool is_configured = i < config.input().split_size();
    auto opened = OpenDataset(config.input(), name, config.training().seed(), options);
    if (!opened.ok()) {
      return InField(is_configured ? absl::StrCat("input.split[", i, "]") : "input.test_fraction", opened.status());
    }
    const std::shared_ptr<const Dataset> dataset = *std::move(opened);
    // Every split must fit the model.
    auto model = SummarizeModel(config.model(), dataset->spec());
    if (!model.ok()) return WithExamples(config.input(), i, model.status());
    if (name == "train") {
      RETURN_IF_ERROR(CheckTraining(fs, config, dataset, &check));
      check.model = *std::move(model);
    }
    if (name == EvaluationSplit(config)) {
      const std::vector<std::string> metrics(config.evaluation().metric().begin(), config.evaluation().metric().end());
      RETURN_IF_ERROR(CreateMetrics(metrics, config.model(), dataset->spec()).status());
    }
    const std::string registered = is_configured ? config.input().split(i).registered().name() : "";
    check.splits.push_back({name, registered, dataset->digest(), dataset->spec()});
  }
  return check;
}

}  // namespace lockstep
