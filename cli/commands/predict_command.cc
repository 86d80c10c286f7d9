#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/train/evaluation/prediction_settings.h"
#include "lockstep/train/evaluation/recorded_run.h"
#include "lockstep/train/evaluation/run_evaluator.h"

namespace lockstep {
namespace {

struct PredictFlags {
  RecordedRunFlags run;
  std::string split;
  std::string file;
  std::string output;
  bool probabilities = false;
};

// Makes the split read `file`, which has the split's format. For csv it adds another split and stores its name in
// `split_name`, so that the column order of the train split stays known.
absl::Status ReplaceFile(const std::string& file, std::string* split_name, config::v1::RunSpec* config) {
  for (config::v1::InputConfig::Split& split : *config->mutable_input()->mutable_split()) {
    if (split.name() != *split_name) continue;
    if (split.has_csv()) {
      config::v1::InputConfig::Split of_file = split;
      *split_name = absl::StrCat("--file=", file);
      of_file.set_name(*split_name);
      of_file.mutable_csv()->set_file(file);
      *config->mutable_input()->add_split() = std::move(of_file);
      return absl::OkStatus();
    }
    if (split.has_libsvm()) {
      split.mutable_libsvm()->set_file(file);
    } else if (split.has_tfrecord()) {
      split.mutable_tfrecord()->clear_file();
      split.mutable_tfrecord()->add_file(file);
    } else if (split.has_idx()) {
      split.mutable_idx()->set_images(file);
      split.mutable_idx()->clear_labels();
    } else if (split.has_npz()) {
      split.mutable_npz()->set_file(file);
    } else if (split.has_npy()) {
      split.mutable_npy()->Clear();
      split.mutable_npy()->set_features(file);
    } else if (split.registered().file_size() == 1) {
      split.mutable_registered()->set_file(0, file);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--file takes the place of the split's file, or of a registered input's only one; split \"",
                       *split_name, "\" has none"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Predict(FileSystem* fs, const PredictFlags& flags, std::ostream& err) {
  ASSIGN_OR_RETURN(config::v1::RunSpec config, flags.run.LoadConfig(fs));
  std::string split = flags.split.empty() ? EvaluationSplit(config) : flags.split;
  if (!flags.file.empty()) RETURN_IF_ERROR(ReplaceFile(flags.file, &split, &config));
  ASSIGN_OR_RETURN(const std::string prefix, flags.run.FindCheckpoint(fs, err));
  ASSIGN_OR_RETURN(const PredictionOptions options, PredictionOptionsOf(fs, config, split, flags.probabilities));
  ASSIGN_OR_RETURN(const auto evaluator,
                   RunEvaluator::Create(fs, config, split, SourceOf(flags.run), /*labels_optional=*/true));
  RETURN_IF_ERROR(evaluator->PredictCheckpoint(prefix, options, flags.output));
  return evaluator->dataset().size();
}

}  // namespace

int PredictCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  PredictFlags flags;
  CommandLine command_line(
      "lockstep predict", "Writes what a run's model answers for each example of a split, as CSV.",
      "With --file other examples take the place of the split's. csv, idx, tfrecord, npz and npy files may\n"
      "lack labels (and the columns of labels, targets and weights); in libsvm files a label may be any\n"
      "when it is not known.\n"
      "Columns: example (from 0), label, class (of the greatest output), class_name, output_0, output_1, ...\n"
      "as the last layer gives them; label and class only where labels are classes; class_name where\n"
      "classes have names\n"
      "(evaluation.class_name, evaluation.class_name_file, or the categories of a csv label).\n"
      "Exit codes: 0 done; 1 damaged checkpoint, export or data, disk full; 2 wrong arguments or no such run.\n"
      "Example: lockstep predict --logdir=runs/fashion_mnist --split=test --output=test.csv");
  flags.run.Declare(&command_line);
  flags.run.DeclareMovingAverages(&command_line);
  command_line.AddFlag("split", "NAME", "evaluation.split of the configuration when absent", &flags.split);
  command_line.AddFlag(
      "file", "FILE",
      "the file to read instead of the split's; of idx the images, of npy the features; of a registered input its only "
      "one",
      &flags.file);
  command_line.AddFlag("probabilities", "",
                       "probability_0, ... instead of outputs: what softmax or sigmoid cross-entropy makes of them",
                       &flags.probabilities);
  command_line.AddFlag("output", "FILE", "the CSV file; an existing one is replaced", &flags.output);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  flags.run.LetFlagsExcludeVariables(command_line);
  if (flags.output.empty()) {
    return PrintError("lockstep predict", "--output is missing: the CSV file to write", kExitBadConfiguration, err);
  }
  const auto examples = Predict(fs, flags, err);
  if (!examples.ok()) {
    return PrintError("lockstep predict", examples.status().message(), ExitCodeOfInput(examples.status()), err);
  }
  out << "wrote " << flags.output << ", " << *examples << " examples\n";
  return kExitDone;
}

}  // namespace lockstep
