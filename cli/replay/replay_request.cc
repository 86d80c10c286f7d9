#include "lockstep/cli/replay/replay_request.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/common/flags/command_line.h"

namespace lockstep {
namespace {

// Parses "A..B".
absl::optional<std::pair<int64_t, int64_t>> ParseSteps(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, "..");
  std::pair<int64_t, int64_t> steps;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &steps.first) && absl::SimpleAtoi(parts[1], &steps.second) &&
      steps.first >= 0 && steps.first < steps.second) {
    return steps;
  }
  return absl::nullopt;
}

}  // namespace

absl::optional<int> ReplayRequest::Parse(const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  std::string range;
  CommandLine command_line(
      kReplayCommand,
      "Computes steps, or one slot, of a recorded run again, to the same bits, from a checkpoint before them.",
      "Steps of an ASYNC or FIRST_ARRIVALS run need training.record_order. Each step that the logdir has a checkpoint "
      "of\n"
      "is compared with it.\n"
      "If the run's model is a program, such as a Python script, the program follows \"--\". It runs once, unchanged, "
      "in\n"
      "this terminal. Its worker computes the slots, and a Python program ends after the last one.\n"
      "Exit codes: 0 done; 1 a step differs from the run's checkpoint, a file cannot be read or written, or the "
      "program\n"
      "ended before its worker was done; 2 wrong arguments, no such run, or steps that cannot be computed: a file is\n"
      "damaged, the order is not on record, or a loss is not finite.\n"
      "Examples: lockstep replay --logdir=runs/mlp --step=1200 --slot=3 --dump=/tmp/slot\n"
      "          lockstep replay --logdir=runs/net --steps=1000..1200 -- python train.py");
  command_line.AddFlag("logdir", "DIR", "the run's logdir, which is only read", &logdir);
  command_line.AddFlag("steps", "A..B", "computes the steps after A up to B", &range);
  command_line.AddFlag("step", "S", "with --slot: the global step after the update, as errors and events count it",
                       &step);
  command_line.AddFlag("slot", "K",
                       "prints the slot's loss, and a line for each gradient, update value and input; in an ASYNC or "
                       "FIRST_ARRIVALS run slot K is the K-th contribution that counted, from 0",
                       &slot);
  command_line.AddFlag("dump", "PREFIX",
                       "also writes a checkpoint PREFIX.index: with --steps the state of step B, with --slot the loss, "
                       "gradients and inputs",
                       &dump);
  command_line.AddFlag("set", "PATH=VALUE", "sets a field of the recorded configuration, such as a path of data", &set);
  if (const auto exit_code = command_line.Parse(words, out, err)) return exit_code;
  const bool one_slot = command_line.IsGiven("step") && command_line.IsGiven("slot");
  if (logdir.empty() || one_slot == !range.empty() || command_line.IsGiven("step") != command_line.IsGiven("slot")) {
    return PrintError(kReplayCommand, "takes --logdir and either --steps or --step with --slot; try --help",
                      kExitBadConfiguration, err);
  }
  if (one_slot) return absl::nullopt;
  steps = ParseSteps(range);
  if (steps) return absl::nullopt;
  return PrintError(
      kReplayCommand,
      absl::StrCat("--steps is \"", range, "\", must be A..B, two global steps with A < B, such as 100..200"),
      kExitBadConfiguration, err);
}

std::vector<std::string> ReplayRequest::ToWords() const {
  std::vector<std::string> words = {absl::StrCat("--logdir=", AbsolutePath(logdir))};
  if (steps) {
    words.push_back(absl::StrCat("--steps=", steps->first, "..", steps->second));
  } else {
    words.push_back(absl::StrCat("--step=", step));
    words.push_back(absl::StrCat("--slot=", slot));
  }
  if (!dump.empty()) words.push_back(absl::StrCat("--dump=", AbsolutePath(dump)));
  for (const std::string& override : set) words.push_back(absl::StrCat("--set=", override));
  return words;
}

}  // namespace lockstep
