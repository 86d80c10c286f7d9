#include "lockstep/server/chief/run/run_summaries.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {
namespace {

constexpr absl::Duration kFlushLimit = absl::Seconds(5);

}  // namespace

RunSummaries::RunSummaries(const Options& options, int64_t step, std::unique_ptr<EventQueue> events)
    : options_(options),
      events_(std::move(events)),
      rate_time_(options.clock->Now()),
      rate_step_(step),
      examples_per_step_(options.examples_per_step),
      examples_step_(step) {}

void RunSummaries::OnStart(int64_t step, bool resumed) {
  if (events_ != nullptr) events_->WriteSessionLog(v1::SessionLog::START, resumed ? step + 1 : step);
}

absl::Status RunSummaries::Add(v1::Summary summary, int64_t step) {
  if (events_ == nullptr) return absl::OkStatus();
  v1::Event event;
  event.set_step(step);
  *event.mutable_summary() = std::move(summary);
  MutexLock lock(&mutex_);
  if (ended_) {
    return absl::OutOfRangeError(
        absl::StrCat("the run is over and ", events_->path(), " is closed: a summary of step ", step, " is dropped"));
  }
  if (events_->Write(std::move(event))) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(events_->path(), " takes no events: a summary of step ", step, " is dropped"));
}

void RunSummaries::OnCommit(const Update& update) {
  if (events_ == nullptr || options_.every_steps <= 0) return;
  if (update.step % options_.every_steps != 0 && !update.last) return;
  const auto write = [&](absl::string_view tag, double value) {
    events_->WriteScalar(tag, static_cast<float>(value), update.step);
  };
  MutexLock lock(&mutex_);
  if (ended_) return;
  const Rates rates = TakeRates(update.step);
  if (options_.writes_loss) write("loss", update.mean_loss);
  write("learning_rate", update.learning_rate);
  if (update.norms.has_value()) {
    write("global_norm/gradient_norm", update.norms->gradient);
    write("update_ratio", update.norms->ratio());
  }
  if (options_.writes_loss && rates.steps > 0) write("global_step/sec", rates.steps);
  if (rates.examples > 0) write("examples/sec", rates.examples);
  for (const StepMetric& metric : update.metrics) write(metric.name, metric.mean);
}

void RunSummaries::CountExamples(int64_t step) {
  examples_ += (step - examples_step_) * examples_per_step_;
  examples_step_ = step;
}

void RunSummaries::SetExamplesPerStep(int64_t examples, int64_t step) {
  MutexLock lock(&mutex_);
  CountExamples(step);
  examples_per_step_ = examples;
}

RunSummaries::Rates RunSummaries::TakeRates(int64_t step) {
  CountExamples(step);
  const absl::Time now = options_.clock->Now();
  const double seconds = absl::ToDoubleSeconds(now - rate_time_);
  Rates rates;
  if (seconds > 0) {
    rates.steps = static_cast<double>(step - rate_step_) / seconds;
    rates.examples = static_cast<double>(examples_) / seconds;
  }
  rate_time_ = now;
  rate_step_ = step;
  examples_ = 0;
  return rates;
}

void RunSummaries::OnSaved(int64_t step, const std::string& prefix) {
  if (events_ == nullptr) return;
  MutexLock lock(&mutex_);
  if (!ended_) events_->WriteSessionLog(v1::SessionLog::CHECKPOINT, step, prefix);
}

void RunSummaries::Flush() {
  if (events_ == nullptr) return;
  const absl::Status flushed = events_->Flush(kFlushLimit);  // logs errors
  MutexLock lock(&mutex_);
  disk_is_late_ = absl::IsDeadlineExceeded(flushed);
}

void RunSummaries::OnEnd() {
  if (events_ == nullptr) return;
  bool wait = false;
  {
    MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    wait = !disk_is_late_;
    events_->WriteSessionLog(v1::SessionLog::STOP, 0);
  }
  if (wait) Flush();
}

}  // namespace lockstep
