#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/config_flags.h"
#include "cli/quantity.h"
#include "common/base/command_line.h"
#include "common/base/process.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "worker/data/open_dataset.h"
#include "worker/nn/model_summary.h"

namespace lockstep {
namespace {

std::string LabelsText(const ExampleSpec& spec) {
  return spec.classes > 0 ? absl::StrCat(spec.classes, " classes")
                          : absl::StrCat(spec.labels_shape.num_elements(), " targets");
}

absl::Status Check(FileSystem* fs, const ConfigFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const RunConfig config, flags.Load(fs));
  DatasetOptions options;
  options.fs = fs;
  std::string table;
  int64_t train_examples = 0;
  for (const InputConfig::Split& split : config.input().split()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset,
                     OpenDataset(config.input(), split.name(), config.training().seed(), options));
    const ExampleSpec& spec = dataset->spec();
    out << split.name() << ": " << CountText(dataset->size(), "example") << " of " << NameOf(spec.features_dtype)
        << spec.features_shape.ToString() << ", " << LabelsText(spec) << "\n";
    // Every split has to fit the model.
    ASSIGN_OR_RETURN(const ModelSummary model, SummarizeModel(config.model(), spec));
    if (split.name() == "train" || table.empty()) table = model.ToTable();
    if (split.name() == "train") train_examples = dataset->size();
  }
  const TrainingConfig& training = config.training();
  const int64_t batch = training.replicas_to_aggregate() * config.input().batch_size();
  out << CountText(training.steps(), "step") << " of " << CountText(training.replicas_to_aggregate(), "slot") << " of "
      << CountText(config.input().batch_size(), "example");
  if (train_examples > 0) {
    out << ": " << QuantityText(static_cast<double>(training.steps()) * batch / train_examples) << " epochs";
  }
  out << "\n\n" << table;
  return absl::OkStatus();
}

}  // namespace

int CheckCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  ConfigFlags flags;
  CommandLine command_line("lockstep check",
                           "Verifies a configuration, opens its data, makes its model, and shows all three.",
                           "Exit codes: 0 it is good; 2 it is not: one line for each problem.");
  flags.Declare(&command_line);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const absl::Status status = Check(fs, flags, out);
  if (!status.ok()) return PrintError("lockstep check", status.message(), kExitBadConfiguration, err);
  out << "\n" << flags.config << " is good\n";
  return kExitDone;
}

}  // namespace lockstep
