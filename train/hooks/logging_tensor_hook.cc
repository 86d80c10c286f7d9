#include "lockstep/train/hooks/logging_tensor_hook.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/fetched_value.h"

namespace lockstep::train {
namespace {

void LogInfo(const std::string& line) { LOG(INFO) << line; }

std::string DefaultFormat(const std::vector<std::pair<std::string, Tensor>>& values, int64_t summarize) {
  return absl::StrJoin(values, ", ", [summarize](std::string* out, const std::pair<std::string, Tensor>& value) {
    absl::StrAppend(out, value.first, " = ", TensorText(value.second, summarize));
  });
}

LoggingTensorOptions WithDefaults(LoggingTensorOptions options) {
  if (!options.log) options.log = LogInfo;
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoggingTensorHook>> LoggingTensorHook::Create(const LoggingTensorOptions& options) {
  if (options.tensors.empty()) {
    return absl::InvalidArgumentError(
        "LoggingTensorHook's tensors are empty: give \"loss\", \"global_step\" or names of variables");
  }
  if (options.summarize < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("LoggingTensorHook's summarize is ", options.summarize, " where -1 or more is expected"));
  }
  absl::optional<SecondOrStepTimer> timer;
  if (options.every_n_iter || options.every_n_secs || !options.at_end) {
    ASSIGN_OR_RETURN(timer, SecondOrStepTimer::Create({options.every_n_iter, options.every_n_secs}, options.clock,
                                                      "LoggingTensorHook's every_n_iter and every_n_secs: "));
  }
  return absl::WrapUnique(new LoggingTensorHook(options, timer));
}

LoggingTensorHook::LoggingTensorHook(const LoggingTensorOptions& options, absl::optional<SecondOrStepTimer> timer)
    : options_(WithDefaults(options)), timer_(std::move(timer)) {
  for (const std::string& name : options_.tensors) {
    if (!IsOfEveryRun(name)) variables_.push_back(name);
  }
}

absl::Status LoggingTensorHook::Begin() {
  if (timer_) timer_->Reset();
  runs_ = 0;
  origin_.reset();
  last_log_.reset();
  return absl::OkStatus();
}

bool LoggingTensorHook::GatesAt(int64_t step) const {
  if (variables_.empty() || !timer_) return false;
  // The first run is always logged.
  return !origin_ || timer_->MayTriggerAt(step - *origin_ - 1);
}

absl::Status LoggingTensorHook::BeforeRun(RunContext& context) {
  if (!origin_) origin_ = context.global_step();
  due_ = timer_ && timer_->ShouldTrigger(runs_);
  if (!due_) return absl::OkStatus();
  for (const std::string& name : variables_) context.Fetch(name);
  return absl::OkStatus();
}

absl::Status LoggingTensorHook::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t run = runs_++;
  last_.result = values.result;
  if (!due_) return absl::OkStatus();
  timer_->Update(run);
  return Log(values);
}

absl::Status LoggingTensorHook::End(Session& session) {
  if (!options_.at_end) return absl::OkStatus();
  if (!variables_.empty()) {
    ASSIGN_OR_RETURN(ReadResult read, session.Read(variables_));
    for (NamedTensor& value : read.values) last_.fetched[value.name] = value;
  }
  ASSIGN_OR_RETURN(last_.result.global_step, session.GlobalStep());
  return Log(last_);
}

absl::Status LoggingTensorHook::Log(const RunValues& values) {
  std::vector<std::pair<std::string, Tensor>> named;
  for (const std::string& name : options_.tensors) {
    ASSIGN_OR_RETURN(Tensor value, FetchedValue(values, name));
    named.emplace_back(name, std::move(value));
  }
  std::string line = options_.formatter ? options_.formatter(named) : DefaultFormat(named, options_.summarize);
  const absl::Time now = options_.clock->Now();
  if (last_log_ && !options_.formatter) {
    absl::StrAppendFormat(&line, " (%.3f sec)", absl::ToDoubleSeconds(now - *last_log_));
  }
  last_log_ = now;
  options_.log(line);
  return absl::OkStatus();
}

}  // namespace lockstep::train
