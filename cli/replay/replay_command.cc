#include "lockstep/cli/replay/replay_command.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/report/variable_table.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/digest.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/train/replay/run_replay.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep replay";

struct ReplayFlags {
  std::string logdir;
  std::string steps;
  int64_t step = 0;
  int64_t slot = -1;
  std::string dump;
  std::vector<std::string> set;
};

// Parses "A..B".
absl::StatusOr<std::pair<int64_t, int64_t>> ParseSteps(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, "..");
  std::pair<int64_t, int64_t> steps;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &steps.first) && absl::SimpleAtoi(parts[1], &steps.second) &&
      steps.first >= 0 && steps.first < steps.second) {
    return steps;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--steps is \"", text, "\", must be A..B, two global steps with A < B, such as 100..200"));
}

// Formats a loss with enough digits to show every bit.
std::string LossText(double loss) { return absl::StrFormat("%.17g", loss); }
std::string LossText(float loss) { return absl::StrFormat("%.9g", loss); }

absl::StatusOr<std::unique_ptr<RunReplay>> OpenRun(FileSystem* fs, const ReplayFlags& flags,
                                                   std::function<void(const RunReplay::Step&)> on_step) {
  RunReplay::Options options;
  options.fs = fs;
  options.logdir = flags.logdir;
  options.set = flags.set;
  options.on_step = std::move(on_step);
  return RunReplay::Open(std::move(options));
}

absl::Status ReplaySteps(FileSystem* fs, const ReplayFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const auto range, ParseSteps(flags.steps));
  absl::Status differs;
  ASSIGN_OR_RETURN(
      const auto replay, OpenRun(fs, flags, [&](const RunReplay::Step& step) {
        out << "step " << step.step << "  loss " << LossText(step.mean_loss) << (step.skipped ? "  skipped" : "");
        if (step.checkpoint && !step.difference) out << "  the same bits as " << *step.checkpoint;
        if (step.difference) {
          const std::string what = absl::StrCat("differs from ", *step.checkpoint, " in ", *step.difference);
          out << "  " << what;
          // Not DataLoss, because that exits with code 2, which means that a file is damaged.
          differs.Update(absl::InternalError(absl::StrCat("step ", step.step, " ", what)));
        }
        out << std::endl;
      }));
  RETURN_IF_ERROR(replay->ComputeSteps(range.first, range.second));
  out << "computed from " << replay->checkpoint() << "\n";
  if (!flags.dump.empty()) {
    ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(fs, flags.dump));
    RETURN_IF_ERROR(WriteSnapshot(replay->TakeSnapshot(), writer.get()));
    RETURN_IF_ERROR(writer->Finish());
    ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(fs, flags.dump));
    ASSIGN_OR_RETURN(const std::string digest, CheckpointDigest(*reader));
    out << "wrote " << flags.dump << ", digest " << digest << "\n";
  }
  return differs;
}

absl::Status ReplaySlot(FileSystem* fs, const ReplayFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const auto replay, OpenRun(fs, flags, nullptr));
  ASSIGN_OR_RETURN(const RunReplay::Slot slot, replay->ComputeSlot(flags.step, flags.slot));
  out << "step " << flags.step << "  slot " << flags.slot << "  loss " << LossText(slot.loss);
  if (slot.weight != 1) out << "  weight " << LossText(slot.weight);
  out << "\n"
      << slot.batch << ", with the values of step " << slot.values_step << ", computed from " << replay->checkpoint()
      << "\n";
  std::vector<VariableRow> rows;
  for (const auto& [name, tensor] : slot.tensors) {
    rows.push_back({name, std::string(NameOf(tensor.dtype())), tensor.shape().ToString(), tensor.bytes().size(),
                    tensor.dtype() == v1::DT_FLOAT ? StatisticsOf(tensor) : absl::nullopt});
  }
  PrintVariableTable(rows, out);
  if (flags.dump.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(fs, flags.dump));
  const Tensor loss = Tensor::FromValues<float>(Shape(), {slot.loss});
  RETURN_IF_ERROR(writer->Add("loss", loss.dtype(), loss.shape(), loss.bytes()));
  for (const auto& [name, tensor] : slot.tensors) {
    RETURN_IF_ERROR(writer->Add(name, tensor.dtype(), tensor.shape(), tensor.bytes()));
  }
  RETURN_IF_ERROR(writer->Finish());
  out << "wrote " << flags.dump << "\n";
  return absl::OkStatus();
}

}  // namespace

int ReplayCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  ReplayFlags flags;
  CommandLine command_line(
      kName, "Computes steps, or one slot, of a recorded run again, to the same bits, from a checkpoint before them.",
      "Steps of an ASYNC or FIRST_ARRIVALS run need training.record_order. Each step that the logdir has a checkpoint "
      "of\n"
      "is compared with it.\n"
      "Exit codes: 0 done; 1 a step differs from the run's checkpoint, or a file cannot be read or written; 2 wrong\n"
      "arguments, no such run, or steps that cannot be computed: a file is damaged, the order is not on record, or a\n"
      "loss is not finite.\n"
      "Example: lockstep replay --logdir=runs/mlp --step=1200 --slot=3 --dump=/tmp/slot");
  command_line.AddFlag("logdir", "DIR", "the run's logdir, which is only read", &flags.logdir);
  command_line.AddFlag("steps", "A..B", "computes the steps after A up to B", &flags.steps);
  command_line.AddFlag("step", "S", "with --slot: the global step after the update, as errors and events count it",
                       &flags.step);
  command_line.AddFlag("slot", "K",
                       "prints the slot's loss, and a line for each gradient, update value and input; in an ASYNC or "
                       "FIRST_ARRIVALS run slot K is the K-th contribution that counted, from 0",
                       &flags.slot);
  command_line.AddFlag("dump", "PREFIX",
                       "also writes a checkpoint PREFIX.index: with --steps the state of step B, with --slot the loss, "
                       "gradients and inputs",
                       &flags.dump);
  command_line.AddFlag("set", "PATH=VALUE", "sets a field of the recorded configuration, such as a path of data",
                       &flags.set);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  const bool one_slot = command_line.IsGiven("step") && command_line.IsGiven("slot");
  if (flags.logdir.empty() || one_slot == !flags.steps.empty() ||
      command_line.IsGiven("step") != command_line.IsGiven("slot")) {
    return PrintError(kName, "takes --logdir and either --steps or --step with --slot; try --help",
                      kExitBadConfiguration, err);
  }
  const absl::Status status = one_slot ? ReplaySlot(fs, flags, out) : ReplaySteps(fs, flags, out);
  if (status.ok()) return kExitDone;
  return PrintError(kName, status.message(), ExitCodeOfInput(status), err);
}

}  // namespace lockstep
