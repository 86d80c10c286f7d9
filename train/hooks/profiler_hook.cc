#include "lockstep/train/hooks/profiler_hook.h"

#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {
namespace {

// Returns a complete event in Chrome's trace format; `args` is the content of a JSON object.
std::string Event(absl::string_view name, absl::Duration begin, absl::Duration length, absl::string_view args) {
  return absl::StrFormat(R"({"name":"%s","ph":"X","pid":1,"tid":1,"ts":%d,"dur":%d,"args":{%s}})", name,
                         absl::ToInt64Microseconds(begin), absl::ToInt64Microseconds(length), args);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProfilerHook>> ProfilerHook::Create(const ProfilerOptions& options) {
  ASSIGN_OR_RETURN(const auto timer, SecondOrStepTimer::Create(options.period, options.clock, "ProfilerHook: "));
  if (options.output_directory.empty()) {
    return absl::InvalidArgumentError("ProfilerHook's output_directory is empty: give the directory of the timelines");
  }
  return absl::WrapUnique(new ProfilerHook(options, timer));
}

absl::Status ProfilerHook::Begin() {
  timer_.Reset();
  origin_.reset();
  runs_.clear();
  return absl::OkStatus();
}

absl::Status ProfilerHook::BeforeRun(RunContext& context) {
  begin_ = options_.clock->Now();
  return absl::OkStatus();
}

absl::Status ProfilerHook::AfterRun(RunContext& context, const RunValues& values) {
  const bool first = !origin_.has_value();
  if (first) origin_ = begin_;
  runs_.push_back({begin_, options_.clock->Now(), values.result});
  if (runs_.size() > kMaxRuns) runs_.pop_front();
  const int64_t step = values.result.global_step;
  if (first || !timer_.ShouldTrigger(step)) return absl::OkStatus();
  timer_.Update(step);
  const absl::Status written = Write(step);
  if (!written.ok())
    LOG(WARNING) << "ProfilerHook cannot write the timeline of global step " << step << ": " << written;
  runs_.clear();
  return absl::OkStatus();
}

std::string ProfilerHook::Timeline() const {
  std::string events;
  absl::optional<absl::Time> previous_end;
  for (const Interval& run : runs_) {
    if (previous_end) {
      absl::StrAppend(&events, Event("between runs", *previous_end - *origin_, run.begin - *previous_end, ""), ",\n");
    }
    std::string args = absl::StrCat("\"global_step\":", run.result.global_step);
    // JSON has no NaN.
    if (std::isfinite(run.result.loss)) absl::StrAppendFormat(&args, ",\"loss\":%.9g", run.result.loss);
    absl::StrAppend(&events, Event("run", run.begin - *origin_, run.end - run.begin, args), ",\n");
    previous_end = run.end;
  }
  return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", events,
                      R"({"name":"process_name","ph":"M","pid":1,"args":{"name":"session"}}]})", "\n");
}

absl::Status ProfilerHook::Write(int64_t step) const {
  RETURN_IF_ERROR(options_.fs->CreateDirectory(options_.output_directory));
  const std::string path = JoinPath(options_.output_directory, absl::StrCat("timeline-", step, ".json"));
  return WriteFileAtomically(options_.fs, path, Timeline());
}

}  // namespace lockstep::train
