#include "lockstep/cli/report/run_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "lockstep/cli/report/run_check.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/train/evaluation/run_watcher.h"
#include "lockstep/train/events/event_writer_cache.h"

namespace lockstep {
namespace {

// Number of bytes read from the end of a log.
constexpr uint64_t kTailBytes = 16 << 10;

}  // namespace

RunReport::RunReport(FileSystem* fs, const config::v1::RunSpec& config, std::string logdir)
    : fs_(fs), config_(config), logdir_(std::move(logdir)) {}

absl::StatusOr<std::unique_ptr<RunReport>> RunReport::Create(FileSystem* fs, const config::v1::RunSpec& config,
                                                             std::string logdir) {
  std::unique_ptr<RunReport> report(new RunReport(fs, config, std::move(logdir)));
  config::v1::RunSpec checked = config;
  if (!report->logdir_.empty()) {
    ASSIGN_OR_RETURN(const absl::optional<std::string> newest, LatestCheckpoint(fs, report->logdir_));
    if (newest.has_value()) report->first_step_ = StepOfCheckpoint(*newest).value_or(0);
    // A resumed run does not read the warm start again.
    if (newest.has_value()) checked.mutable_checkpoint()->clear_warm_start();
  }
  const std::string index = report->logdir_.empty() ? "" : JoinPath(report->logdir_, "index");
  ASSIGN_OR_RETURN(RunCheck check, CheckRun(fs, checked, index));
  report->warm_start_ = std::move(check.warm_start);
  report->input_steps_ = check.input_steps;
  const std::string split = EvaluationSplit(config);
  if (report->logdir_.empty()) {
    report->not_evaluated_ = "nothing was kept without a --logdir";
  } else if (!HasSplit(config, split)) {
    report->not_evaluated_ = absl::StrCat("the configuration has no split \"", split, "\"");
  } else {
    ASSIGN_OR_RETURN(report->evaluator_, RunEvaluator::Create(fs, config, split));
  }
  return report;
}

std::string RunReport::Beginning(const std::string& processes) const {
  const config::v1::TrainingConfig& training = config_.training();
  return absl::StrCat("training with ", processes, ", ", TrainingLengthText(training), " of ",
                      CountText(training.replicas_to_aggregate(), "slot"), ", ",
                      logdir_.empty() ? "nothing kept" : absl::StrCat("logdir ", logdir_),
                      first_step_ > 0 && !was_finished() ? absl::StrCat(", resuming from step ", first_step_) : "",
                      warm_start_.empty() ? "" : "\n", warm_start_);
}

absl::StatusOr<RunReport::End> RunReport::RecordedEnd() const {
  End end;
  ASSIGN_OR_RETURN(const absl::optional<std::string> newest, LatestCheckpoint(fs_, logdir_));
  if (newest.has_value()) end.step = StepOfCheckpoint(*newest).value_or(0);
  const auto record = ReadRunRecord(fs_, logdir_);
  if (record.ok() && record->has_value()) end.reason = (*record)->end().reason();
  return end;
}

std::string RunReport::ReasonOf(const End& end) const {
  const int64_t steps = config_.training().steps();
  const bool is_early = end.step < steps;
  if (input_steps_ && end.step >= *input_steps_ && (is_early || steps == 0)) {
    return absl::StrCat("the input has ended, input.epochs is ", config_.input().epochs());
  }
  if (!end.reason.empty()) return end.reason;
  return is_early ? "an earlier end was requested" : "all steps are done";
}

std::string RunReport::LastLine(const End& end, absl::Duration elapsed) const {
  if (was_finished()) {
    return absl::StrCat("finished at step ", first_step_,
                        " already; to continue: --steps=MORE, to start over: --logdir=ANOTHER\n");
  }
  const double rate = static_cast<double>(end.step - first_step_) / std::max(1e-9, absl::ToDoubleSeconds(elapsed));
  return absl::StrCat("finished at step ", end.step, " in ", RemainingTimeText(elapsed), " (", QuantityText(rate),
                      " steps/s from start to end): ", ReasonOf(end), "\n");
}

absl::Status RunReport::Evaluate(const absl::optional<std::string>& checkpoint, std::ostream& out) const {
  if (evaluator_ == nullptr || !checkpoint.has_value()) {
    out << "not evaluated: " << (evaluator_ == nullptr ? not_evaluated_ : absl::StrCat(logdir_, " has no checkpoint"))
        << "\n";
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const RunEvaluator::Evaluation evaluation, evaluator_->EvaluateCheckpoint(*checkpoint));
  out << EvaluationText(evaluator_->split(), evaluation.result) << "\n";
  if (config_.evaluation().every_steps() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto events,
                   EventWriterCache::OfProcess()->Get(fs_, Clock::Real(), JoinPath(logdir_, "eval")));
  WriteEvaluation(evaluation, events.get());
  return absl::OkStatus();
}

absl::Status RunReport::Finished(const End& end, absl::Duration elapsed, std::ostream& out) const {
  absl::StatusOr<absl::optional<std::string>> checkpoint = absl::optional<std::string>();
  if (!logdir_.empty()) checkpoint = LatestCheckpoint(fs_, logdir_);
  const absl::Status evaluated = checkpoint.ok() ? Evaluate(*checkpoint, out) : checkpoint.status();
  if (checkpoint.ok() && checkpoint->has_value()) {
    out << "checkpoint  " << **checkpoint << "   (./lockstep inspect " << logdir_ << ")\n"
        << "summaries   tensorboard --logdir=" << logdir_ << "\n";
  }
  out << LastLine(end, elapsed);
  return evaluated;
}

std::string DefaultLogdir(const std::string& config_path) {
  absl::string_view name = Basename(config_path);
  name = name.substr(0, name.rfind('.'));
  return JoinPath("runs", name);
}

std::string LastLines(FileSystem* fs, const std::string& path, uint64_t offset, int count) {
  const auto file = fs->NewRandomAccessFile(path);
  if (!file.ok() || (*file)->size() < offset) return "";
  const uint64_t bytes = std::min<uint64_t>((*file)->size() - offset, kTailBytes);
  std::string text(bytes, '\0');
  if (!(*file)->Read((*file)->size() - bytes, bytes, &text[0]).ok()) return "";
  std::vector<absl::string_view> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  if (lines.size() > static_cast<size_t>(count)) lines.erase(lines.begin(), lines.end() - count);
  std::string out;
  if (bytes > 0) {
    for (absl::string_view line : lines) absl::StrAppend(&out, "  ", line, "\n");
  }
  return out;
}

}  // namespace lockstep
