#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/launcher/signal_wait.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/train/evaluation/class_report.h"
#include "lockstep/train/evaluation/prediction_settings.h"
#include "lockstep/train/evaluation/recorded_run.h"
#include "lockstep/train/evaluation/run_evaluator.h"
#include "lockstep/train/evaluation/run_watcher.h"
#include "lockstep/train/session/end/run_end_client.h"

namespace lockstep {
namespace {

// Maximum time between two checks for the end of the run.
constexpr absl::Duration kEndPeriod = absl::Milliseconds(500);

struct EvalFlags {
  RecordedRunFlags run;
  std::string split;
  bool json = false;
  bool watch = false;
  std::string confusion;
  absl::Duration every = absl::Seconds(2);
};

void Print(bool json, const std::string& split, const RunEvaluator::Evaluation& evaluation, std::ostream& out) {
  if (json) {
    out << EvaluationJson(split, evaluation) << "\n";
  } else {
    out << "step " << evaluation.step << "  " << EvaluationText(split, evaluation.result) << "\n"
        << MatrixText(evaluation.result);
  }
  out.flush();
}

// Adds the confusion matrix. A run that names no metrics keeps the default ones.
void AddConfusionMatrix(config::v1::EvaluationConfig* evaluation) {
  if (evaluation->metric().empty()) {
    evaluation->add_metric("accuracy");
    evaluation->add_metric("mean_loss");
  }
  if (!absl::c_linear_search(evaluation->metric(), "confusion_matrix")) evaluation->add_metric("confusion_matrix");
}

absl::Status EvaluateOnce(FileSystem* fs, const EvalFlags& flags, std::ostream& out, std::ostream& err) {
  ASSIGN_OR_RETURN(config::v1::RunSpec config, flags.run.LoadConfig(fs));
  if (!flags.confusion.empty()) AddConfusionMatrix(config.mutable_evaluation());
  ASSIGN_OR_RETURN(const std::string prefix, flags.run.FindCheckpoint(fs, err));
  ASSIGN_OR_RETURN(const auto evaluator,
                   RunEvaluator::Create(fs, config, flags.split.empty() ? EvaluationSplit(config) : flags.split,
                                        SourceOf(flags.run)));
  ASSIGN_OR_RETURN(const RunEvaluator::Evaluation evaluation, evaluator->EvaluateCheckpoint(prefix));
  Print(flags.json, evaluator->split(), evaluation, out);
  if (flags.confusion.empty()) return absl::OkStatus();
  const MetricValue* const matrix = evaluation.result.Find("confusion_matrix");
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ClassNames(fs, config, evaluator->split()));
  const ClassReport report = ReportClasses(*matrix, names);
  if (!flags.json) out << ClassReportText(report);
  return WriteFileAtomically(fs, flags.confusion, ClassReportCsv(report));
}

// Evaluates checkpoints until it has evaluated that of the last step, or of the step at which the run ended early.
// Returns Cancelled after a stop signal.
absl::Status EvaluateEach(FileSystem* fs, const EvalFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const std::string logdir, flags.run.Directory());
  // Its destructor unblocks the signals.
  SignalWait signals;
  Mutex mutex;
  CondVar stopped;
  bool stop = false;
  TerminationWatch::Options on_signals;
  on_signals.on_stop = [&] {
    signals.IgnoreStops();
    MutexLock lock(&mutex);
    stop = true;
    stopped.SignalAll();
  };
  // Limits the time to exit, because printing may block on a pipe that has no reader. Nothing is lost by exiting early.
  on_signals.limit = [] { return kEndingLimit; };
  TerminationWatch watch(std::move(on_signals));
  RunWatcher::Options options;
  options.fs = fs;
  options.clock = Clock::Real();
  options.run = flags.run;
  options.split = flags.split;
  options.report = [&](const std::string& split, const RunEvaluator::Evaluation& evaluation) {
    Print(flags.json, split, evaluation, out);
  };
  options.cancelled = [&] {
    MutexLock lock(&mutex);
    return stop;
  };
  RunWatcher watcher(options);
  // The record is read before the watcher looks for a checkpoint, because once a run has finished, its newest
  // checkpoint no longer changes.
  bool finished = train::RecordSaysFinished(fs, logdir);
  for (;;) {
    ASSIGN_OR_RETURN(const bool done, watcher.RunOnce());
    if (done || finished) return absl::OkStatus();
    const absl::Time next = options.clock->Now() + flags.every;
    do {
      const absl::Time pause_end = std::min(next, options.clock->Now() + kEndPeriod);
      {
        MutexLock lock(&mutex);
        while (!stop && !options.clock->WaitUntil(&stopped, &mutex, pause_end)) {
        }
        if (stop) return absl::CancelledError("asked to stop");
      }
      finished = train::RecordSaysFinished(fs, logdir);
    } while (!finished && options.clock->Now() < next);
  }
}

}  // namespace

int EvalCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  EvalFlags flags;
  CommandLine command_line(
      "lockstep eval", "Evaluates a run's checkpoint on a split of its data.",
      "Exit codes: 0 done; 2 wrong arguments, no such run, or damaged data, checkpoint or export;\n"
      "1 a file cannot be read or written; 143 terminated.\n"
      "Example: lockstep eval --logdir=runs/fashion_mnist --split=test");
  flags.run.Declare(&command_line);
  flags.run.DeclareMovingAverages(&command_line);
  command_line.AddFlag("split", "NAME",
                       "evaluation.split of the configuration when absent, which is \"test\" by default", &flags.split);
  command_line.AddFlag(
      "confusion", "FILE",
      "prints the confusion matrix and precision, recall and F1 of each class, and writes them to this "
      "CSV file",
      &flags.confusion);
  command_line.AddFlag("json", "", "prints one JSON object for each evaluation", &flags.json);
  command_line.AddFlag(
      "watch", "",
      "evaluates each new checkpoint until that of the last step, and writes DIR/eval for TensorBoard, DIR/eval_NAME "
      "for another split than the configuration's",
      &flags.watch);
  command_line.AddFlag("every", "TIME", "with --watch: how often to look for a new checkpoint", &flags.every);
  if (const auto exit_code = command_line.Parse(words, out, err)) return *exit_code;
  flags.run.LetFlagsExcludeVariables(command_line);
  if (flags.watch && !flags.run.checkpoint.empty()) {
    return PrintError("lockstep eval", "--watch and --checkpoint exclude each other", kExitBadConfiguration, err);
  }
  if (flags.watch && !flags.confusion.empty()) {
    return PrintError("lockstep eval", "--watch and --confusion exclude each other", kExitBadConfiguration, err);
  }
  if (flags.watch && !flags.run.exported.empty()) {
    return PrintError("lockstep eval", "--watch and --export exclude each other: an export does not change",
                      kExitBadConfiguration, err);
  }
  const absl::Status status = flags.watch ? EvaluateEach(fs, flags, out) : EvaluateOnce(fs, flags, out, err);
  if (status.ok()) return kExitDone;
  if (absl::IsCancelled(status)) return kExitTerminated;
  return PrintError("lockstep eval", status.message(), ExitCodeOfInput(status), err);
}

}  // namespace lockstep
