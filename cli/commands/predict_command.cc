#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/report/quantity.h"
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

// Returns the split from which the split with this name takes its rows, or null if there is none.
const config::v1::InputConfig::Split* SourceOfSplit(const config::v1::InputConfig& input, const std::string& name) {
  const auto find = [&input](const std::string& wanted) -> const config::v1::InputConfig::Split* {
    for (const config::v1::InputConfig::Split& split : input.split()) {
      if (split.name() == wanted) return &split;
    }
    return nullptr;
  };
  const auto* const split = find(name);
  return split == nullptr && input.test_fraction() > 0 && name == "test" ? find("train") : split;
}

// Makes the split read `file`, which must have the split's format.
absl::Status SetFile(const std::string& file, config::v1::InputConfig::Split* split) {
  if (split->has_csv()) {
    split->mutable_csv()->clear_file();
    split->mutable_csv()->add_file(file);
  } else if (split->has_libsvm()) {
    split->mutable_libsvm()->clear_file();
    split->mutable_libsvm()->add_file(file);
  } else if (split->has_tfrecord()) {
    split->mutable_tfrecord()->clear_file();
    split->mutable_tfrecord()->add_file(file);
  } else if (split->has_idx()) {
    split->mutable_idx()->set_images(file);
    split->mutable_idx()->clear_labels();
  } else if (split->has_npz()) {
    split->mutable_npz()->set_file(file);
  } else if (split->has_npy()) {
    split->mutable_npy()->Clear();
    split->mutable_npy()->set_features(file);
  } else if (split->has_images()) {
    split->mutable_images()->set_folder(file);
  } else if (split->registered().file_size() == 1) {
    split->mutable_registered()->set_file(0, file);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--file takes the place of the split's file, or of a registered input's only one; split \"",
                     split->name(), "\" has none"));
  }
  return absl::OkStatus();
}

// Makes the split to predict read `file`. A split that is csv, images or a part of another split is kept, so that the
// training split's columns and classes stay known. In that case, adds a new split and stores its name in `split_name`.
absl::Status ReplaceFile(const std::string& file, std::string* split_name, config::v1::InputConfig* input) {
  const config::v1::InputConfig::Split* const source = SourceOfSplit(*input, *split_name);
  // The evaluator reports the missing split and names the existing ones.
  if (source == nullptr) return absl::OkStatus();
  config::v1::InputConfig::Split changed = *source;
  RETURN_IF_ERROR(SetFile(file, &changed));
  if (changed.has_csv() || changed.has_images() || changed.name() != *split_name || input->test_fraction() > 0) {
    *split_name = absl::StrCat("--file=", file);
    changed.set_name(*split_name);
    *input->add_split() = std::move(changed);
    return absl::OkStatus();
  }
  for (config::v1::InputConfig::Split& split : *input->mutable_split()) {
    if (split.name() == *split_name) split = changed;
  }
  return absl::OkStatus();
}

struct Predicted {
  int64_t examples = 0;
  int64_t rows = 0;
};

absl::StatusOr<Predicted> Predict(FileSystem* fs, const PredictFlags& flags, std::ostream& err) {
  ASSIGN_OR_RETURN(config::v1::RunSpec config, flags.run.LoadConfig(fs));
  std::string split = flags.split.empty() ? EvaluationSplit(config) : flags.split;
  // A file takes only its format from a split, so it does not need a test split.
  if (flags.split.empty() && !flags.file.empty() && SourceOfSplit(config.input(), split) == nullptr) split = "train";
  if (!flags.file.empty()) RETURN_IF_ERROR(ReplaceFile(flags.file, &split, config.mutable_input()));
  // Each row of a text file and each image gets a line of output, even if it is damaged, no matter how training treats
  // damage.
  const auto* const source = SourceOfSplit(config.input(), split);
  if (source != nullptr && (source->has_csv() || source->has_libsvm() || source->has_images())) {
    config.mutable_input()->set_on_damage(config::v1::InputConfig::SKIP_AND_COUNT);
  }
  ASSIGN_OR_RETURN(const std::string prefix, flags.run.FindCheckpoint(fs, err));
  ASSIGN_OR_RETURN(const PredictionOptions options, PredictionOptionsOf(fs, config, split, flags.probabilities));
  ASSIGN_OR_RETURN(const auto evaluator,
                   RunEvaluator::Create(fs, config, split, SourceOf(flags.run), /*for_predictions=*/true));
  RETURN_IF_ERROR(evaluator->PredictCheckpoint(prefix, options, flags.output));
  return Predicted{evaluator->dataset().size(), evaluator->dataset().rows()};
}

}  // namespace

int PredictCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  PredictFlags flags;
  CommandLine command_line(
      "lockstep predict", "Writes what a run's model answers for each row of a split, as CSV.",
      "With --file other examples take the place of the split's. csv, idx, tfrecord, npz and npy files may\n"
      "lack labels (and the columns of labels, targets and weights), and a folder of images may lack the\n"
      "folders of classes; in libsvm files a label may be any when it is not known. A row of a csv file\n"
      "whose label is empty or unknown gets an answer, too; its label is then empty.\n"
      "Columns: example (the row's number, from 0), the csv column of type ID, label, class (of the greatest\n"
      "output), class_name, output_0, output_1, ... as the last layer gives them; label and class only where\n"
      "labels are classes; class_name where classes have names (evaluation.class_name,\n"
      "evaluation.class_name_file, the categories of a csv label, or the folders of images). A damaged row of\n"
      "a csv or libsvm file, or a damaged image, gets a line with nothing behind its number and its ID,\n"
      "whatever input.on_damage says.\n"
      "Exit codes: 0 done; 2 wrong arguments, no such run, or damaged data, checkpoint or export;\n"
      "1 a file cannot be read or written.\n"
      "Example: lockstep predict --logdir=runs/fashion_mnist --split=test --output=test.csv");
  flags.run.Declare(&command_line);
  flags.run.DeclareMovingAverages(&command_line);
  command_line.AddFlag(
      "split", "NAME",
      "evaluation.split of the configuration when absent; train for a --file when there is no such split",
      &flags.split);
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
  const auto predicted = Predict(fs, flags, err);
  if (!predicted.ok()) {
    return PrintError("lockstep predict", predicted.status().message(), ExitCodeOfInput(predicted.status()), err);
  }
  out << "wrote " << flags.output << ", " << predicted->examples << " examples";
  const int64_t empty = predicted->rows - predicted->examples;
  if (empty > 0) out << "; " << CountText(empty, "damaged row") << " without an answer";
  out << "\n";
  return kExitDone;
}

}  // namespace lockstep
