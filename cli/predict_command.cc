#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/config_flags.h"
#include "cli/recorded_run.h"
#include "cli/run_evaluator.h"
#include "common/base/command_line.h"
#include "common/base/process.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

struct PredictFlags {
  RecordedRunFlags run;
  std::string split;
  std::string file;
  std::string output;
};

// Lets the split read `file`, which has the split's format.
absl::Status ReplaceFile(const std::string& split_name, const std::string& file, RunConfig* config) {
  for (InputConfig::Split& split : *config->mutable_input()->mutable_split()) {
    if (split.name() != split_name) continue;
    if (split.has_csv()) {
      split.mutable_csv()->set_file(file);
    } else if (split.has_libsvm()) {
      split.mutable_libsvm()->set_file(file);
    } else if (split.has_tfrecord()) {
      split.mutable_tfrecord()->clear_file();
      split.mutable_tfrecord()->add_file(file);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "--file takes the place of a csv, libsvm or tfrecord file; split \"", split_name, "\" has none"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Predict(FileSystem* fs, const PredictFlags& flags, std::ostream& err) {
  ASSIGN_OR_RETURN(RunConfig config, flags.run.LoadConfig(fs));
  const std::string split = flags.split.empty() ? EvaluationSplit(config) : flags.split;
  if (!flags.file.empty()) RETURN_IF_ERROR(ReplaceFile(split, flags.file, &config));
  ASSIGN_OR_RETURN(const std::string prefix, flags.run.FindCheckpoint(fs, err));
  ASSIGN_OR_RETURN(const auto evaluator, RunEvaluator::Create(fs, config, split));
  RETURN_IF_ERROR(evaluator->PredictCheckpoint(prefix, flags.output));
  return evaluator->dataset().size();
}

}  // namespace

int PredictCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  PredictFlags flags;
  CommandLine command_line(
      "lockstep predict", "Writes what a run's model answers for each example of a split, as CSV.",
      "With --file other examples take the place of the split's; they are written as these are, with a label, which "
      "may\n"
      "be any when it is not known.\n"
      "Columns: example (from 0), label, class (of the greatest output), output_0, output_1, ... as the last layer\n"
      "gives them; label and class only where labels are classes.\n"
      "Exit codes: 0 done; 1 damaged checkpoint or data, disk full; 2 wrong arguments or no such run.\n"
      "Example: lockstep predict --logdir=runs/fashion_mnist --split=test --output=test.csv");
  flags.run.Declare(&command_line);
  command_line.AddFlag("split", "NAME", "evaluation.split of the configuration when absent", &flags.split);
  command_line.AddFlag("file", "FILE", "a csv, libsvm or tfrecord file to read instead of the split's", &flags.file);
  command_line.AddFlag("output", "FILE", "the CSV file; an existing one is replaced", &flags.output);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
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
