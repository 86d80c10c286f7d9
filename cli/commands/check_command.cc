#include <memory>

#include "absl/strings/str_cat.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/report/run_check.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

std::string LabelsText(const ExampleSpec& spec) {
  return spec.classes > 0 ? absl::StrCat(spec.classes, " classes")
                          : absl::StrCat(spec.labels_shape.num_elements(), " targets");
}

absl::Status Check(FileSystem* fs, const ConfigFlags& flags, std::ostream& out) {
  std::unique_ptr<ConfigSource> source;
  ASSIGN_OR_RETURN(const config::v1::RunSpec config, flags.Load(fs, &source));
  const auto check = CheckRun(fs, config, /*index_directory=*/"");
  if (!check.ok()) return source->Locate(check.status());
  int64_t train_examples = 0;
  for (const RunCheck::Split& split : check->splits) {
    const std::string input = split.registered.empty() ? "" : absl::StrCat(" (", split.registered, ")");
    out << absl::StrCat(split.name, input, ": ", CountText(split.digest.examples(), "example"), " of ",
                        NameOf(split.spec.features_dtype), split.spec.features_shape.ToString(), ", ",
                        LabelsText(split.spec), ", CRC32C ", absl::Hex(split.digest.crc32c(), absl::kZeroPad8), "\n");
    if (split.name == "train") train_examples = split.digest.examples();
  }
  const config::v1::TrainingConfig& training = config.training();
  const int64_t batch = training.replicas_to_aggregate() * config.input().batch_size();
  const bool ends_early = check->input_steps && (training.steps() == 0 || *check->input_steps < training.steps());
  const int64_t steps = ends_early ? *check->input_steps : training.steps();
  out << (ends_early ? CountText(steps, "step") : TrainingLengthText(training)) << " of "
      << CountText(training.replicas_to_aggregate(), "slot") << " of "
      << CountText(config.input().batch_size(), "example");
  const std::string epochs = absl::StrCat(" (input.epochs is ", config.input().epochs(), ")");
  if (check->stream_batches) {
    out << " at most; the stream of each worker ends after "
        << (*check->stream_batches == 1 ? "1 batch" : absl::StrCat(*check->stream_batches, " batches")) << epochs;
  } else if (train_examples > 0 && steps > 0) {
    out << ": " << QuantityText(static_cast<double>(steps) * batch / train_examples) << " epochs";
  }
  if (ends_early) out << ", then the input ends" << epochs;
  out << "\n\n" << check->model.ToTable();
  if (!check->warm_start.empty()) out << "\n" << check->warm_start << "\n";
  return absl::OkStatus();
}

}  // namespace

int CheckCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  ConfigFlags flags;
  CommandLine command_line(
      "lockstep check", "Verifies a configuration, opens its data, makes its model, and shows all three.",
      "Exit codes: 0 it is good; 2 it is not, or the data are damaged: one line for each problem;\n"
      "1 a file cannot be read.");
  flags.Declare(&command_line);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const absl::Status status = Check(fs, flags, out);
  if (!status.ok()) return PrintError("lockstep check", status.message(), ExitCodeOfInput(status), err);
  out << "\n" << flags.config << " is good\n";
  return kExitDone;
}

}  // namespace lockstep
