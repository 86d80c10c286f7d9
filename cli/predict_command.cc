#include <memory>

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
  std::string output;
};

absl::StatusOr<int64_t> Predict(FileSystem* fs, const PredictFlags& flags, std::ostream& err) {
  ASSIGN_OR_RETURN(const RunConfig config, flags.run.LoadConfig(fs));
  ASSIGN_OR_RETURN(const std::string prefix, flags.run.FindCheckpoint(fs, err));
  ASSIGN_OR_RETURN(const auto evaluator,
                   RunEvaluator::Create(fs, config, flags.split.empty() ? EvaluationSplit(config) : flags.split));
  RETURN_IF_ERROR(evaluator->PredictCheckpoint(prefix, flags.output));
  return evaluator->dataset().size();
}

}  // namespace

int PredictCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  PredictFlags flags;
  CommandLine command_line(
      "lockstep predict", "Writes what a run's model answers for each example of a split, as CSV.",
      "Columns: example (from 0), label, class (of the greatest output), output_0, output_1, ... as the last layer\n"
      "gives them; label and class only where labels are classes.\n"
      "Exit codes: 0 done; 1 damaged checkpoint or data, disk full; 2 wrong arguments or no such run.\n"
      "Example: lockstep predict --logdir=runs/fashion_mnist --split=test --output=test.csv");
  flags.run.Declare(&command_line);
  command_line.AddFlag("split", "NAME", "evaluation.split of the configuration when absent", &flags.split);
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
