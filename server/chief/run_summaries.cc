#include "lockstep/server/chief/run_summaries.h"

#include <utility>

#include "absl/strings/string_view.h"

namespace lockstep {
namespace {

constexpr absl::Duration kFlushLimit = absl::Seconds(5);

}  // namespace

RunSummaries::RunSummaries(const Options& options, int64_t step, std::unique_ptr<EventQueue> events)
    : options_(options), events_(std::move(events)), rate_time_(options.clock->Now()), rate_step_(step) {}

void RunSummaries::OnStart(int64_t step) {
  if (events_ != nullptr) events_->WriteSessionLog(v1::SessionLog::START, step);
}

void RunSummaries::Add(v1::Summary summary, int64_t step) {
  if (events_ == nullptr) return;
  v1::Event event;
  event.set_step(step);
  *event.mutable_summary() = std::move(summary);
  events_->Write(std::move(event));
}

void RunSummaries::OnCommit(const Update& update) {
  if (events_ == nullptr || options_.every_steps <= 0) return;
  if (update.step % options_.every_steps != 0 && !update.last) return;
  const auto write = [&](absl::string_view tag, double value) {
    events_->WriteScalar(tag, static_cast<float>(value), update.step);
  };
  const double rate = TakeStepsPerSecond(update.step);
  write("loss", update.mean_loss);
  write("learning_rate", update.learning_rate);
  if (update.norms.has_value()) {
    write("global_norm/gradient_norm", update.norms->gradient);
    write("update_ratio", update.norms->ratio());
  }
  if (rate > 0) write("global_step/sec", rate);
  if (rate > 0 && options_.examples_per_step > 0) {
    write("examples/sec", rate * static_cast<double>(options_.examples_per_step));
  }
}

double RunSummaries::TakeStepsPerSecond(int64_t step) {
  MutexLock lock(&mutex_);
  const absl::Time now = options_.clock->Now();
  const double seconds = absl::ToDoubleSeconds(now - rate_time_);
  const int64_t steps = step - rate_step_;
  rate_time_ = now;
  rate_step_ = step;
  return seconds > 0 ? static_cast<double>(steps) / seconds : 0;
}

void RunSummaries::OnSaved(int64_t step, const std::string& prefix) {
  if (events_ != nullptr) events_->WriteSessionLog(v1::SessionLog::CHECKPOINT, step, prefix);
}

void RunSummaries::OnEnd() {
  if (events_ == nullptr) return;
  events_->WriteSessionLog(v1::SessionLog::STOP, 0);
  events_->Flush(kFlushLimit).IgnoreError();  // logged
}

}  // namespace lockstep
